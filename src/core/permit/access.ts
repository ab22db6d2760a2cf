import type { Access, Policy } from "../../config/policy-file.ts";
import { firstFew } from "../../messages/markdown.ts";
import type { Command, CommandClass } from "../../registry/define.ts";
import type { ListedPerson, Person } from "../../registry/invocation.ts";
import { fold } from "../../text/fold.ts";
import { compileGlob, isGlob } from "../../text/glob.ts";
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

/**
 * Returns the access lists that allow a command; being in one of them is enough. Refusals name the
 * first. Administrators may also view.
 */
export function listsFor(command: Command): readonly AccessList[] {
  const list = listOfClass[command.class];
  if (list === "view") return ["view", "administer"];
  return command.kind === "read" && command.approversToo ? [list, "approve"] : [list];
}

/**
 * Returns the access lists that a person is in. When projects are given, the person must be in a
 * list for each of them. Otherwise it is enough to be in the list anywhere. Only full, active,
 * human members of this workspace are in any list, with one exception: a guest whom a `view` list
 * names by ID or group may view. `*` stands for members only. A group that Slack doesn't report
 * counts as one that the person isn't in. Administrators are administrators for every team.
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

/**
 * Whether a rule of `approvals` names this person as a voter. Such a person may be in no access
 * list at all.
 */
export function mayVote({ approvals }: Policy, person: Person, ourTeamId: string): boolean {
  const votes = approvals.flatMap(({ votes: needs = [] }) => needs);
  return isFullMember(person, ourTeamId) && votes.some(({ from }) => named(from, person));
}

/**
 * Returns the places of gatehouse.yml whose VMs and projects this person may see: `access`,
 * `teams.payments`, …
 */
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

/** Whether the entries name this person, who must be a full member, because `*` names everyone. */
export function named(entries: readonly string[], person: ListedPerson): boolean {
  return entries.includes("*") || isNamed(entries, person);
}

function isNamed(entries: readonly string[], person: ListedPerson): boolean {
  return entries.some(
    (entry) => entry !== "*" && (entry === person.id || person.groups.includes(entry)),
  );
}

/** Splits an access list into user IDs, user group IDs, and `*`. */
export function whoAre(list: readonly string[]) {
  const entries = [...new Set(list)];
  return {
    everyone: entries.includes("*"),
    users: entries.filter((entry) => /^[UW]/.test(entry)),
    groups: entries.filter((entry) => entry.startsWith("S")),
  };
}

export type NameOf = ((id: string) => string | undefined) | undefined;

const maxNamed = 8;

/**
 * Lists people and groups by name. An ID without a known name is shown as code, because a refusal
 * must notify nobody.
 */
function inWords(ids: readonly string[], nameOf: NameOf): string {
  const names = ids.map((id) => nameOf?.(id)?.replaceAll("`", "'") ?? `\`${id}\``);
  return firstFew(names, maxNamed);
}

/**
 * Returns a sentence like ` They can help: Alice, ops-leads.`, which begins with a space so that it
 * can follow another one. Empty when the entries have no ID.
 */
export function nameInSentence(begin: string, entries: readonly string[], nameOf: NameOf): string {
  const ids = entries.filter((entry) => entry !== "*");
  return ids.length === 0 ? "" : ` ${begin} ${inWords(ids, nameOf)}.`;
}

/**
 * Returns the names of people and groups in plain words: `@oncall`, `ola and @leads`, `ola, amir,
 * and 7 more`. An ID without a known name stays an ID.
 */
export function namesInWords(entries: readonly string[], nameOf: NameOf, most = maxInSentence) {
  const names = entries.map((id) => nameOf?.(id) ?? id);
  const rest = names.length - most;
  return allOf.format(rest > 0 ? [...names.slice(0, most), `${rest} more`] : names);
}

/** The same, where `*` among the entries stands for everybody who may use Gatehouse. */
export const peopleInWords = (entries: readonly string[], nameOf: NameOf): string =>
  entries.includes("*") ? "every full member" : namesInWords(entries, nameOf);

const maxInSentence = 3;
const allOf = new Intl.ListFormat("en-US", { type: "conjunction" });

/** Says whom to add to a list (`access.operate`, `teams.payments.operate`) that has nobody. */
export function explainHowToList(list: string): string {
  const key = list.split(".").at(-1);
  return `Add user groups or user IDs to \`${list}\` in gatehouse.yml, like \`${key}: ["S01ONCALL"]\`, and have Gatehouse read it (SIGHUP).`;
}

/**
 * The part of a project by which a team claims it. `name` is undefined where only the ID is known.
 */
export interface Owned {
  id: string;
  name: string | undefined;
}

/**
 * The people who may do something with the projects of a team, or, under `access`, with projects
 * that no team has.
 */
export type Rights = Pick<Access, "view" | "operate" | "approve" | "breakGlass">;

/**
 * The compiled claims of each policy. They are kept because every project of a fleet is looked up.
 */
const claimsOf = new WeakMap<Policy["teams"], ReturnType<typeof readClaims>>();

/**
 * Returns the names of the teams that a project belongs to: none or one. It returns two only when
 * one team claims the project's ID and another its name. A person then needs the right from both.
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

/**
 * Compiles entries into a test whether they name a project. The name of the tested project must be
 * folded. An entry without `*` and `?` may be an ID or a name.
 */
function claimsIn(projects: readonly string[]): (project: Owned) => boolean {
  const ids = new Set(projects.filter((entry) => !isGlob(entry)));
  const names = new Set(ids.values().map(fold));
  const matches = projects.filter(isGlob).map((glob) => compileGlob(fold(glob)));
  return ({ id, name }) =>
    ids.has(id) ||
    (name !== undefined && (names.has(name) || matches.some((match) => match(name))));
}

/**
 * Returns the rights that count for a project, each with its place in gatehouse.yml. A person needs
 * the right from all of them.
 */
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

/** Returns every place of gatehouse.yml that gives rights, `access` first. */
export function allRights(policy: Policy): readonly { place: string; rights: Rights }[] {
  const teams = Object.entries(policy.teams);
  return [
    { place: "access", rights: rightsOf(policy.access) },
    ...teams.map(([name, team]) => ({ place: `teams.${name}`, rights: rightsOf(team) })),
  ];
}

/** Adds everyone who may do something with a VM or project to the people who see it. */
function rightsOf({ view, operate, approve, breakGlass }: Rights): Rights {
  const seers = new Set([...view, ...operate, ...approve, ...breakGlass]);
  return { view: [...seers], operate, approve, breakGlass };
}

/**
 * Returns the channel in which a project's team decides about it. Undefined when two teams claim
 * the project, because neither team's channel may be told of it (decision 055).
 */
export function channelOfProject(
  policy: Pick<Policy, "teams">,
  project: Owned,
): string | undefined {
  const [team = "", ...others] = teamsOf(policy, project);
  return others.length === 0 ? policy.teams[team]?.channel : undefined;
}

/**
 * Returns the entries of each team that match no project. Such a project isn't made yet, or the
 * entry is misspelt.
 */
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

/** Returns the part of the fleet that a person may see. Undefined when they may see everything. */
export function scopeOfPerson(
  policy: Policy,
  person: Person,
  ourTeamId: string,
): Scope | undefined {
  return scopeOf(policy, placesSeen(policy, person, ourTeamId));
}

/**
 * Returns the part of the fleet that the `view` of a service names. Undefined when it names
 * everything.
 */
export function scopeOfView(view: readonly string[]): Scope | undefined {
  if (view.includes("*")) return undefined;
  const claim = claimsIn(view);
  return { key: `view ${view.join(" ")}`, sees: (project) => claim(folded(project)) };
}

/**
 * Returns the part of the fleet that a channel may be told about: the projects of its teams, or, in
 * a channel of no team, the projects that no team has. Undefined when that is everything.
 */
export function scopeOfChannel(policy: Policy, channelId: string): Scope | undefined {
  return scopeOf(policy, placesOf(policy, channelId));
}

/**
 * Returns the part of the fleet that a channel may be told about, as far as this person sees it. In
 * a direct message it is everything that the person sees. Undefined when nothing is left out.
 */
export function scopeShownTo(
  person: Person,
  channelId: string,
  policy: Policy,
  ourTeamId: string,
): Scope | undefined {
  if (Object.keys(policy.teams).length === 0) return undefined;
  const seen = placesSeen(policy, person, ourTeamId);
  if (channelId.startsWith("D")) return scopeOf(policy, seen);
  const channelPlaces = placesOf(policy, channelId).filter((place) => seen.includes(place));
  return scopeOf(policy, channelPlaces);
}

/** Whether a channel may be told less than this person sees elsewhere. */
export function seesMoreElsewhere(
  channelId: string,
  person: Person,
  policy: Policy,
  ourTeamId: string,
): boolean {
  if (Object.keys(policy.teams).length === 0 || channelId.startsWith("D")) return false;
  const channelPlaces = placesOf(policy, channelId);
  return placesSeen(policy, person, ourTeamId).some((place) => !channelPlaces.includes(place));
}

/**
 * Whether a person sees everything that a channel may be told about. Nobody else may decide what
 * the channel is told.
 */
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
 * Whether a project may be shown under each of its known names, the earlier and the present one. A
 * project without a known name can't be assigned to a team, so it is shown only to a viewer who
 * sees everything.
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

/**
 * Returns the owner of a project as gatehouse.yml calls it: `access` when no team has the project,
 * or a team like `teams.payments`. When two teams claim it by mistake, both are named, with a space
 * between them.
 */
export function policyPlaceOf(policy: Policy, project: Owned): string {
  return rightsOver(policy, project)
    .map(({ place }) => place)
    .join(" ");
}

/**
 * Returns the channel of the team at a place (`policyPlaceOf`). Undefined for projects that no team
 * has, for a team without a channel, and for projects that two teams claim, because neither team's
 * channel may be told about them.
 */
export function channelOfTeam({ teams }: Policy, place: string): string | undefined {
  const [, team = ""] = /^teams\.(\S+)$/.exec(place) ?? [];
  return teams[team]?.channel;
}

/**
 * Returns the channel for alarms about projects of a place (`policyPlaceOf`): the team's channel,
 * or the channel of `alerts` for projects that no team has. If the team has no channel, it is the
 * audit channel, which hears of every team.
 */
export function alertChannel(policy: Policy, place: string): string | undefined {
  if (place === "access") return policy.alerts?.channel;
  return channelOfTeam(policy, place) ?? policy.audit?.channel;
}

/** Returns the places whose projects a channel may be told about. Two teams may share a channel. */
export function placesOf({ teams }: Policy, channelId: string): readonly string[] {
  const ours = Object.entries(teams).filter(([, { channel }]) => channel === channelId);
  return ours.length === 0 ? ["access"] : ours.map(([name]) => `teams.${name}`);
}

const policyNumbers = new WeakMap<Policy["teams"], number>();
let lastPolicyNumber = 0;

function scopeOf(policy: Policy, places: readonly string[]): Scope | undefined {
  if (places.length === allRights(policy).length) return undefined;
  const seen = new Set(places);
  const number = policyNumbers.get(policy.teams) ?? (lastPolicyNumber += 1);
  policyNumbers.set(policy.teams, number);
  return {
    // The number tells one policy from another, whose places may have the same names.
    key: [number, ...places].join(" "),
    sees: (project) => rightsOver(policy, project).every(({ place }) => seen.has(place)),
  };
}
