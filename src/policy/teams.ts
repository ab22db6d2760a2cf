import type { Access, Policy } from "../config/policy-file.ts";
import { compileGlob, fold, isGlob } from "../text/glob.ts";

/** A project as far as teams go; `name` is undefined where only its ID is known. */
export interface Owned {
  id: string;
  name: string | undefined;
}

/** Who may do what: with the projects of a team, or in `access` with what no team has. */
export type Rights = Pick<Access, "view" | "operate" | "approve" | "breakGlass">;

/** Sorting out a name costs a glob of each team: it is remembered, up to this many. */
const maxRemembered = 50_000;

interface Claims {
  literal: ReadonlyMap<string, readonly string[]>;
  globs: readonly { team: string; matches(name: string): boolean }[];
  remembered: Map<string, readonly string[]>;
}

const claimsOf = new WeakMap<Policy["teams"], Claims>();
const none: readonly string[] = [];

/**
 * The teams that a project belongs to, by name: none or one. Two only when one claims its ID and another its name: then
 * only what both allow is allowed.
 */
export function teamsOf({ teams }: Pick<Policy, "teams">, { id, name }: Owned): readonly string[] {
  const claims = claimsOf.get(teams) ?? readClaims(teams);
  if (claims.literal.size === 0 && claims.globs.length === 0) return none;
  const key = `${id}\n${name ?? ""}`;
  const known = claims.remembered.get(key);
  if (known) return known;
  const folded = name === undefined ? undefined : fold(name);
  const found = new Set([
    ...((id === "" ? undefined : claims.literal.get(`id ${id}`)) ?? none),
    ...((folded === undefined ? undefined : claims.literal.get(`name ${folded}`)) ?? none),
    ...(folded === undefined
      ? none
      : claims.globs.filter(({ matches }) => matches(folded)).map(({ team }) => team)),
  ]);
  const result = found.size === 0 ? none : [...found];
  if (claims.remembered.size >= maxRemembered) claims.remembered.clear();
  claims.remembered.set(key, result);
  return result;
}

/** An entry without `*` and `?` may be an ID or a name. */
function readClaims(teams: Policy["teams"]): Claims {
  const literal = new Map<string, string[]>();
  const globs: { team: string; matches(name: string): boolean }[] = [];
  for (const [team, { projects }] of Object.entries(teams)) {
    for (const entry of projects) {
      if (isGlob(entry)) globs.push({ team, matches: compileGlob(fold(entry)) });
      else
        for (const key of [`id ${entry}`, `name ${fold(entry)}`])
          literal.set(key, [...(literal.get(key) ?? []), team]);
    }
  }
  const claims = { literal, globs, remembered: new Map<string, readonly string[]>() };
  claimsOf.set(teams, claims);
  return claims;
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

const withView = new WeakMap<Rights, Rights>();

/** Everyone who may do something with a VM or project sees it too. */
function rightsOf(listed: Rights): Rights {
  const known = withView.get(listed);
  if (known) return known;
  const { view, operate, approve, breakGlass } = listed;
  const rights = {
    view: [...new Set([...view, ...operate, ...approve, ...breakGlass])],
    operate,
    approve,
    breakGlass,
  };
  withView.set(listed, rights);
  return rights;
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

/** The team whose channel this is; undefined for every other channel, which sees what no team has. */
export function teamOfChannel(
  { teams }: Pick<Policy, "teams">,
  channelId: string,
): string | undefined {
  return Object.entries(teams).find(([, { channel }]) => channel === channelId)?.[0];
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
