import { parsePolicy, type Policy } from "../../src/policy-file.ts";
import type { CommandClass } from "../../src/registry/define.ts";
import type { Person } from "../../src/registry/person.ts";
import type { Target } from "../../src/registry/target.ts";

export const ourTeamId = "T0OURS";

/** A policy as its file would say it. */
export function policyOf(yaml: string): Policy {
  const read = parsePolicy(yaml, "gatehouse.yml");
  if ("problems" in read) throw new Error(read.problems.join("\n"));
  return read.policy;
}

export const usual = policyOf(`
access:
  view: ["*"]
  operate: ["S01ONCALL", "U0OLA"]
  approve: ["S02LEADS", "U0OLA"]
  administer: ["U09ADMIN"]
  breakGlass: ["U0GLASS"]
protect: ["vault-*"]
`);

export function person(id: string, over: Partial<Person> = {}): Person {
  return { id, teamId: ourTeamId, name: id, kind: "member", groups: [], ...over };
}

export function vm(name: string, projectName = "shop"): Target {
  return {
    kind: "vm",
    id: `vm-${name}`,
    name,
    projectId: `p-${projectName}`,
    projectName,
    status: "RUNNING",
  };
}

export function project(name: string): Target {
  return { kind: "project", id: `p-${name}`, name, projectId: `p-${name}`, status: "ACTIVE" };
}

/** All commands of design.md section 4 and their classes. */
export const commands: readonly { name: string; class: CommandClass }[] = [
  ...named(
    "read",
    "vm list",
    "vm show",
    "vm metrics",
    "vm attest",
    "vm snapshots",
    "project list",
    "project show",
  ),
  ...named("read", "gatehouse help", "gatehouse jobs", "gatehouse status", "gatehouse can-i"),
  ...named("change", "vm start", "vm snapshot", "project create", "gatehouse digest"),
  ...named("disrupt", "vm stop", "vm restart", "vm resize", "project update"),
  ...named("destroy", "vm restore", "project delete"),
  ...named("secret", "vm console"),
  ...named("administer", "gatehouse freeze", "gatehouse thaw"),
];

function named(commandClass: CommandClass, ...names: readonly string[]) {
  return names.map((name) => ({ name, class: commandClass }));
}

export function command(name: string): { name: string; class: CommandClass } {
  const found = commands.find((one) => one.name === name);
  if (!found) throw new Error(`no command ${name}`);
  return found;
}
