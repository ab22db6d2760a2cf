import type { Access, Policy } from "../config/policy-file.ts";
import type { Command, CommandClass } from "../registry/define.ts";
import type { Person } from "../registry/invocation.ts";
import { allRights, type Owned, type Rights, rightsOver } from "./teams.ts";

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
function inWords(entries: readonly string[], nameOf: NameOf): string {
  const shown = entries
    .filter((entry) => entry !== "*")
    .slice(0, maxNamed)
    .map((id) => nameOf?.(id)?.replaceAll("`", "'") ?? `\`${id}\``);
  const more = entries.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}

/** ` They can help: Alice, S02LEADS.`, or nothing when the list names no one. */
export function andThey(begin: string, entries: readonly string[], nameOf: NameOf): string {
  const ids = entries.filter((entry) => entry !== "*");
  return ids.length === 0 ? "" : ` ${begin}: ${inWords(ids, nameOf)}.`;
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
