import type { Access, Policy } from "../config/policy-file.ts";
import { compileGlob, fold, isGlob } from "../text/glob.ts";

/** A project as far as teams go; `name` is undefined where only its ID is known. */
export interface Owned {
  id: string;
  name: string | undefined;
}

/** Who may do what: with the projects of a team, or in `access` with what no team has. */
export type Rights = Pick<Access, "view" | "operate" | "approve" | "breakGlass">;

/** Read once for each policy: of a fleet every project is looked up. */
const claimsOf = new WeakMap<Policy["teams"], ReturnType<typeof readClaims>>();

/**
 * The teams that a project belongs to, by name: none or one. Two only when one claims its ID and another its name: then
 * only what both allow is allowed.
 */
export function teamsOf({ teams }: Pick<Policy, "teams">, { id, name }: Owned): readonly string[] {
  const claims = claimsOf.get(teams) ?? readClaims(teams);
  claimsOf.set(teams, claims);
  const folded = name === undefined ? undefined : fold(name);
  const byId = claims.filter(({ ids }) => ids.has(id));
  const byName = claims.filter(({ isNamed }) => folded !== undefined && isNamed(folded));
  return [...new Set([...byId, ...byName].map(({ team }) => team))];
}

/** An entry without `*` and `?` may be an ID or a name. */
function readClaims(teams: Policy["teams"]) {
  return Object.entries(teams).map(([team, { projects }]) => {
    const ids = new Set(projects.filter((entry) => !isGlob(entry)));
    const names = new Set(ids.values().map(fold));
    const matches = projects.filter(isGlob).map((glob) => compileGlob(fold(glob)));
    const isNamed = (name: string) => names.has(name) || matches.some((match) => match(name));
    return { team, ids, isNamed };
  });
}

/** The rights that count for a project, each with its place in gatehouse.yml: all must allow. */
export function rightsOver(
  policy: Policy,
  project: Owned,
): readonly { place: string; rights: Rights }[] {
  const teams = teamsOf(policy, project).flatMap((name) => {
    const team = policy.teams[name];
    return team ? [{ place: `teams.${name}`, rights: rightsOf(team) }] : [];
  });
  return teams.length > 0 ? teams : [{ place: "access", rights: rightsOf(policy.access) }];
}

/** Everywhere that some rights are given: `access` first. */
export function allRights(policy: Policy): readonly { place: string; rights: Rights }[] {
  const teams = Object.entries(policy.teams);
  return [
    { place: "access", rights: rightsOf(policy.access) },
    ...teams.map(([name, team]) => ({ place: `teams.${name}`, rights: rightsOf(team) })),
  ];
}

/** Everyone who may do something with a VM or project sees it too. */
function rightsOf({ view, operate, approve, breakGlass }: Rights): Rights {
  const seers = new Set([...view, ...operate, ...approve, ...breakGlass]);
  return { view: [...seers], operate, approve, breakGlass };
}

/** Every user ID and user group ID that the policy gives something to. */
export function everyoneNamed({ access, teams, approvals }: Policy): readonly string[] {
  const entries = [
    ...Object.values(access).flat(),
    ...Object.values(teams)
      .flatMap(rightsOf)
      .flatMap((rights) => Object.values(rights).flat()),
    ...approvals.flatMap(({ votes = [] }) => votes.flatMap(({ from }) => from)),
  ];
  return [...new Set(entries)].filter((entry) => entry !== "*");
}

/** Every channel that the policy sends something to. */
export function channelsNamed(policy: Policy): readonly string[] {
  const { channels = [], sharedChannels, audit, alerts, digests, teams } = policy;
  const named = [
    audit?.channel,
    alerts?.channel,
    ...digests.map(({ channel }) => channel),
    ...Object.values(teams).map(({ channel }) => channel),
    ...channels,
    ...sharedChannels,
  ];
  return [...new Set(named.filter((id) => id !== undefined))];
}

/** Where its team decides about a project; where two claim it, the channel of the first that has one. */
export function channelOfProject(
  policy: Pick<Policy, "teams">,
  project: Owned,
): string | undefined {
  const channels = teamsOf(policy, project).map((team) => policy.teams[team]?.channel);
  return channels.find((channel) => channel !== undefined);
}

/** What teams claim and no project has, by team: perhaps it isn't made yet, perhaps it is misspelt. */
export function unmatchedIn(
  { teams }: Pick<Policy, "teams">,
  projects: readonly { id: string; name: string }[],
): readonly { team: string; entries: readonly string[] }[] {
  const ids = new Set(projects.map(({ id }) => id));
  const names = new Set(projects.map(({ name }) => fold(name)));
  const isMatched = (entry: string) => {
    if (!isGlob(entry)) return ids.has(entry) || names.has(fold(entry));
    const matches = compileGlob(fold(entry));
    return names.values().some(matches);
  };
  return Object.entries(teams).flatMap(([team, { projects: all }]) => {
    const entries = all.filter((entry) => !isMatched(entry));
    return entries.length > 0 ? [{ team, entries }] : [];
  });
}
