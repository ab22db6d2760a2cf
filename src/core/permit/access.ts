import type { Access, Policy } from "../../config/policy-file.ts";
import { firstFew } from "../../messages/message.ts";
import type { Command, CommandClass } from "../../registry/define.ts";
import type { Person } from "../../registry/invocation.ts";
import { compileGlob, fold, isGlob } from "../../text/glob.ts";
import type { Scope } from "../../fleet/inventory/inventory.ts";

export type AccessList = keyof Access;

const rightLists = ["view", "operate", "approve", "breakGlass"] as const;

/** The list that each class of command requires. */
const listOfClass: Readonly<Record<CommandClass, AccessList>> = {
  read: "view",
  change: "operate",
  disrupt: "operate",
  destroy: "operate",
  secret: "operate",
  administer: "administer",
};

/** The access lists of which one is enough to run a command; refusals name the first. Administrators may view. */
export function listsFor(command: Command): readonly AccessList[] {
  const list = listOfClass[command.class];
  if (list === "view") return ["view", "administer"];
  return command.kind === "read" && command.approversToo ? [list, "approve"] : [list];
}

/**
 * The access lists a person is in: over these projects, in all of which they must be, or anywhere when none is named. Only
 * full, active, human members of this workspace are in any, with one exception: a guest listed under `view` by ID or group may
 * view. `*` means members only. Groups that Slack doesn't report count as no. Administrators are it for every team.
 */
export function lists(
  policy: Policy,
  person: Person,
  ourTeamId: string,
  projects: readonly Owned[] = [],
): readonly AccessList[] {
  const within = (rights: Rights) => listsIn(rights, person, ourTeamId);
  const all = projects
    .flatMap((project) => rightsOver(policy, project))
    .map(({ rights }) => rights);
  const isIn =
    all.length > 0
      ? all.map(within).reduce((some, others) => some.filter((list) => others.includes(list)))
      : [...new Set(allRights(policy).flatMap(({ rights }) => within(rights)))];
  return administers(policy, person, ourTeamId) ? [...isIn, "administer"] : isIn;
}

/** Whether a rule of `approvals` asks for this person's vote, who may see nothing else. */
export function mayVote({ approvals }: Policy, person: Person, ourTeamId: string): boolean {
  const votes = approvals.flatMap(({ votes: needs = [] }) => needs);
  return isFullMember(person, ourTeamId) && votes.some(({ from }) => named(from, person));
}

/** `access`, `teams.payments`, …: the places of gatehouse.yml whose VMs and projects this person may see. */
export function placesSeen(policy: Policy, person: Person, ourTeamId: string): readonly string[] {
  const isAll = administers(policy, person, ourTeamId);
  return allRights(policy)
    .filter(({ rights }) => isAll || listsIn(rights, person, ourTeamId).includes("view"))
    .map(({ place }) => place);
}

function administers({ access }: Policy, person: Person, ourTeamId: string): boolean {
  return isFullMember(person, ourTeamId) && named(access.administer, person);
}

function listsIn(rights: Rights, person: Person, ourTeamId: string): readonly AccessList[] {
  if (isFullMember(person, ourTeamId))
    return rightLists.filter((list) => named(rights[list], person));
  const isGuest = person.kind === "guest" && isOurs(person, ourTeamId);
  return isGuest && isNamed(rights.view, person) ? ["view"] : [];
}

export function isFullMember(person: Person, ourTeamId: string): boolean {
  return person.kind === "member" && isOurs(person, ourTeamId);
}

const isOurs = ({ teamId }: Person, ourTeamId: string) => teamId === ourTeamId && ourTeamId !== "";

/** For full members alone. */
export function named(entries: readonly string[], person: Pick<Person, "id" | "groups">): boolean {
  return entries.includes("*") || isNamed(entries, person);
}

function isNamed(entries: readonly string[], person: Pick<Person, "id" | "groups">): boolean {
  return entries.some(
    (entry) => entry !== "*" && (entry === person.id || person.groups.includes(entry)),
  );
}

/** Who an access list names, people and groups apart. */
export function whoAre(list: readonly string[]) {
  const entries = [...new Set(list)];
  return {
    everyone: entries.includes("*"),
    users: entries.filter((entry) => /^[UW]/.test(entry)),
    groups: entries.filter((entry) => entry.startsWith("S")),
  };
}

type NameOf = ((id: string) => string | undefined) | undefined;

const maxNamed = 8;

/** By name, or as code where none is known: a refusal notifies no one. */
function inWords(ids: readonly string[], nameOf: NameOf): string {
  const names = ids.map((id) => nameOf?.(id)?.replaceAll("`", "'") ?? `\`${id}\``);
  return firstFew(names, maxNamed);
}

/** ` They can help: Alice, S02LEADS.`, or nothing when the list names no one. */
export function andThey(begin: string, entries: readonly string[], nameOf: NameOf): string {
  const ids = entries.filter((entry) => entry !== "*");
  return ids.length === 0 ? "" : ` ${begin} ${inWords(ids, nameOf)}.`;
}

/** How to get on a list (`access.operate`, `teams.payments.operate`), and who is on it. */
export function addToList(list: string, entries: readonly string[], nameOf: NameOf): string {
  const place = `\`${list}\` in gatehouse.yml`;
  if (entries.length === 0) {
    const key = list.split(".").at(-1);
    return `No one is listed yet: add your user ID or user group to ${place}, like \`${key}: ["S01ONCALL"]\`, and have Gatehouse read it (SIGHUP).`;
  }
  return `Allowed: ${inWords(entries, nameOf)}. To get access, have your user group added to ${place}.`;
}

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
export function teamsOf({ teams }: Pick<Policy, "teams">, project: Owned): readonly string[] {
  const claims = claimsOf.get(teams) ?? readClaims(teams);
  claimsOf.set(teams, claims);
  const sought = folded(project);
  return claims.flatMap(({ team, claim }) => (claim(sought) ? [team] : []));
}

function readClaims(teams: Policy["teams"]) {
  return Object.entries(teams).map(([team, { projects }]) => ({ team, claim: claimsIn(projects) }));
}

const folded = ({ id, name }: Owned): Owned => ({ id, name: name && fold(name) });

/** Whether some entries name a project, whose name is folded. An entry without `*` and `?` may be an ID or a name. */
function claimsIn(projects: readonly string[]): (project: Owned) => boolean {
  const ids = new Set(projects.filter((entry) => !isGlob(entry)));
  const names = new Set(ids.values().map(fold));
  const matches = projects.filter(isGlob).map((glob) => compileGlob(fold(glob)));
  return ({ id, name }) =>
    ids.has(id) ||
    (name !== undefined && (names.has(name) || matches.some((match) => match(name))));
}

/** The rights that count for a project, each with its place in gatehouse.yml: all must allow. */
export function rightsOver(
  policy: Pick<Policy, "access" | "teams">,
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
  projects: readonly Owned[],
): readonly { team: string; entries: readonly string[] }[] {
  const sought = projects.map(folded);
  return Object.entries(teams).flatMap(([team, { projects: all }]) => {
    const entries = all.filter((entry) => !sought.some(claimsIn([entry])));
    return entries.length > 0 ? [{ team, entries }] : [];
  });
}

/** Undefined for those who see everything. */
export function scopeOfPerson(
  policy: Policy,
  person: Person,
  ourTeamId: string,
): Scope | undefined {
  return scopeOf(policy, placesSeen(policy, person, ourTeamId));
}

/** What the `view` of a service names; undefined for everything. */
export function scopeOfView(view: readonly string[]): Scope | undefined {
  if (view.includes("*")) return undefined;
  const claim = claimsIn(view);
  return { key: `view ${view.join(" ")}`, sees: (project) => claim(folded(project)) };
}

/** What may be told in a channel: what its team has, and elsewhere what no team has. */
export function scopeOfChannel(policy: Policy, channelId: string): Scope | undefined {
  return scopeOf(policy, placesOf(policy, channelId));
}

/** What may be told in a channel, as far as this person sees it; in their direct messages, all that they see. */
export function scopeShownTo(
  person: Person,
  channelId: string,
  policy: Policy,
  ourTeamId: string,
): Scope | undefined {
  if (Object.keys(policy.teams).length === 0) return undefined;
  const seen = placesSeen(policy, person, ourTeamId);
  if (channelId.startsWith("D")) return scopeOf(policy, seen);
  const told = placesOf(policy, channelId).filter((place) => seen.includes(place));
  return scopeOf(policy, told);
}

/** Whether a person sees all that may be told in a channel: who doesn't has no say in what is. */
export function seesAllOf(
  channelId: string,
  person: Person,
  policy: Policy,
  ourTeamId: string,
): boolean {
  const seen = placesSeen(policy, person, ourTeamId);
  return placesOf(policy, channelId).every((place) => seen.includes(place));
}

/**
 * Whether a project may be shown under every name that is known of it: the one it had, and that of now. Where no name is
 * known, no team can be told from another: only where everything is seen.
 */
export function seesUnder(
  scope: Scope | undefined,
  id: string,
  names: readonly (string | undefined)[],
): boolean {
  if (!scope) return true;
  const known = names.filter((name) => name !== undefined);
  return known.length > 0 && known.every((name) => scope.sees({ id, name }));
}

/** Whose a project is, as gatehouse.yml calls it: `access` for what no team has, `teams.payments`, or by mistake two of them. */
export function policyPlaceOf(policy: Policy, project: Owned): string {
  return rightsOver(policy, project)
    .map(({ place }) => place)
    .join(" ");
}

/** Undefined for what no team has, for a team without a channel, and where two teams have it: neither's may speak of it. */
export function channelOfTeam({ teams }: Policy, place: string): string | undefined {
  const [, team = ""] = /^teams\.(\S+)$/.exec(place) ?? [];
  return teams[team]?.channel;
}

/**
 * Where alarms about projects of a place (`policyPlaceOf`) go: to the team's channel, or to `alerts` for what no team has. What a team
 * without a channel has is told in the audit channel, which hears of every team.
 */
export function alertChannel(policy: Policy, place: string): string | undefined {
  if (place === "access") return policy.alerts?.channel;
  return channelOfTeam(policy, place) ?? policy.audit?.channel;
}

/** Two teams may share a channel. */
export function placesOf({ teams }: Policy, channelId: string): readonly string[] {
  const ours = Object.entries(teams).filter(([, { channel }]) => channel === channelId);
  return ours.length === 0 ? ["access"] : ours.map(([name]) => `teams.${name}`);
}

const numbers = new WeakMap<Policy["teams"], number>();
let policies = 0;

function scopeOf(policy: Policy, places: readonly string[]): Scope | undefined {
  if (places.length === allRights(policy).length) return undefined;
  const seen = new Set(places);
  const number = numbers.get(policy.teams) ?? (policies += 1);
  numbers.set(policy.teams, number);
  return {
    // Another policy's places have the same names
    key: [number, ...places].join(" "),
    sees: (project) => rightsOver(policy, project).every(({ place }) => seen.has(place)),
  };
}
