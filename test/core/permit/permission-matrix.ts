import type { Policy } from "../../../src/config/policy-file.ts";
import type { Command, CommandClass } from "../../../src/registry/define.ts";
import type { Person } from "../../../src/registry/invocation.ts";
import type { AccessList } from "../../../src/core/permit/access.ts";
import { approvalRule } from "../../../src/core/permit/approval-rule.ts";
import { refusal } from "../../../src/core/permit/refusal.ts";
import { accessLists } from "./sample.ts";

/**
 * The kinds of people that a policy tells apart: a member in no list, a member in exactly one list,
 * and people who aren't members. These are in all lists, to show that it doesn't help them.
 */
export const roles = [
  "member",
  "view",
  "operate",
  "approve",
  "administer",
  "breakGlass",
  "guest",
  "external",
  "bot",
  "deactivated",
] as const;
export type Role = (typeof roles)[number];

export interface MatrixRow {
  command: string;
  class: CommandClass;
  /** How many approvals the command needs on a target that no rule names. */
  approvals: number;
  may: Readonly<Record<Role, boolean>>;
}

const someone = "U0SOMEONE";
const ourTeamId = "T0OURS";

/**
 * Returns who may run which of these commands under a policy, as the tables of the tests have it.
 */
export function permissionMatrix(policy: Policy, commands: readonly Command[]): MatrixRow[] {
  return commands.map((command) => ({
    command: command.name,
    class: command.class,
    approvals: approvalRule(policy, { command, targets: [] }).required,
    may: {
      member: may(policy, command, "member"),
      view: may(policy, command, "view"),
      operate: may(policy, command, "operate"),
      approve: may(policy, command, "approve"),
      administer: may(policy, command, "administer"),
      breakGlass: may(policy, command, "breakGlass"),
      guest: may(policy, command, "guest"),
      external: may(policy, command, "external"),
      bot: may(policy, command, "bot"),
      deactivated: may(policy, command, "deactivated"),
    },
  }));
}

function may(policy: Policy, command: Command, role: Role): boolean {
  const listed: Policy = { ...policy, access: withSomeone(policy, role) };
  const channelId = policy.channels?.[0] ?? "C0ANY";
  const asked = { person: personAs(role), ourTeamId, command, targets: [], channelId };
  return refusal({ ...asked, policy: listed }) === undefined;
}

function withSomeone({ access }: Policy, role: Role): Policy["access"] {
  if (role === "member") return access;
  if (isList(role)) return { ...access, [role]: [...access[role], someone] };
  return {
    view: [...access.view, someone],
    operate: [...access.operate, someone],
    approve: [...access.approve, someone],
    administer: [...access.administer, someone],
    breakGlass: [...access.breakGlass, someone],
  };
}

function isList(role: Role): role is AccessList & Role {
  return accessLists.some((list) => list === role);
}

function personAs(role: Role): Person {
  const isMember =
    role !== "guest" && role !== "external" && role !== "bot" && role !== "deactivated";
  const teamId = role === "external" ? "T0THEIRS" : ourTeamId;
  return { id: someone, teamId, name: role, kind: isMember ? "member" : role, groups: [] };
}
