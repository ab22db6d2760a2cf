import type { Access, Policy } from "../policy-file.ts";
import type { CommandClass } from "../registry/define.ts";
import type { Person } from "../registry/person.ts";

export type AccessList = keyof Access;

export const accessLists: readonly AccessList[] = [
  "view",
  "operate",
  "approve",
  "administer",
  "breakGlass",
];

/** What each class of command asks for (design.md section 3). */
const listOfClass: Readonly<Record<CommandClass, AccessList>> = {
  read: "view",
  change: "operate",
  disrupt: "operate",
  destroy: "operate",
  secret: "operate",
  administer: "administer",
};

/**
 * The access lists of which one is enough to run a command; the first is the one to ask for. Administrators may view,
 * and stopping everything is never wrong: approvers may freeze too.
 */
export function listsFor(command: { name: string; class: CommandClass }): readonly AccessList[] {
  const list = listOfClass[command.class];
  if (list === "view") return ["view", "administer"];
  return command.name === "gatehouse freeze" ? ["administer", "approve"] : [list];
}

/**
 * The access lists a person is in. Whoever isn't a full, active, human member of our team is in none, listed or not,
 * but for one case: a guest who is listed under `view` by id or group may view. `*` means members only.
 * A group that Slack doesn't know, or that wasn't looked up, is in nobody's `groups`: unknown means no.
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

/** Named by id, or by a group. */
function isNamed(entries: readonly string[], person: Person): boolean {
  return entries.some(
    (entry) => entry !== "*" && (entry === person.id || person.groups.includes(entry)),
  );
}

export interface Entitled {
  everyone: boolean;
  users: readonly string[];
  groups: readonly string[];
}

/** Who a list names. */
export function whoMay(policy: Policy, list: AccessList): Entitled {
  const entries = [...new Set(policy.access[list])];
  return {
    everyone: entries.includes("*"),
    users: entries.filter((entry) => /^[UW]/.test(entry)),
    groups: entries.filter((entry) => entry.startsWith("S")),
  };
}
