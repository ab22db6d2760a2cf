import type { Access, Policy } from "../config/policy-file.ts";
import type { Command, CommandClass } from "../registry/define.ts";
import type { Person } from "../registry/person.ts";

export type AccessList = keyof Access;

export const accessLists: readonly AccessList[] = [
  "view",
  "operate",
  "approve",
  "administer",
  "breakGlass",
];

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
 * The access lists a person is in. Only full, active, human members of this team are in any, with one exception: a guest
 * listed under `view` by ID or group may view. `*` means members only. Groups that Slack doesn't report count as no.
 */
export function lists(policy: Policy, person: Person, ourTeamId: string): readonly AccessList[] {
  if (person.teamId !== ourTeamId || ourTeamId === "") return [];
  if (person.kind === "guest") return isNamed(policy.access.view, person) ? ["view"] : [];
  if (person.kind !== "member") return [];
  return accessLists.filter((list) => {
    const entries = policy.access[list];
    return entries.includes("*") || isNamed(entries, person);
  });
}

function isNamed(entries: readonly string[], person: Person): boolean {
  return entries.some(
    (entry) => entry !== "*" && (entry === person.id || person.groups.includes(entry)),
  );
}

/** Who a list names. */
export function whoMay(policy: Policy, list: AccessList) {
  const entries = [...new Set(policy.access[list])];
  return {
    everyone: entries.includes("*"),
    users: entries.filter((entry) => /^[UW]/.test(entry)),
    groups: entries.filter((entry) => entry.startsWith("S")),
  };
}

type NameOf = ((id: string) => string | undefined) | undefined;

const maxNamed = 8;

/** By name, or as code where none is known: a refusal notifies no one. */
function named(entries: readonly string[], nameOf: NameOf): string {
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
  return ids.length === 0 ? "" : ` ${begin}: ${named(ids, nameOf)}.`;
}

/** How to get access, and who has it. */
export function addToList(list: AccessList, entries: readonly string[], nameOf: NameOf): string {
  const place = `\`access.${list}\` in gatehouse.yml`;
  if (entries.length === 0) {
    return `No one is listed yet: add your user ID or user group to ${place}, like \`${list}: ["S01ONCALL"]\`, and have Gatehouse read it (SIGHUP).`;
  }
  return `Allowed: ${named(entries, nameOf)}. To get access, have your user group added to ${place}.`;
}
