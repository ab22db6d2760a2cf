import { parsePolicy, type Policy } from "../../../src/config/policy-file.ts";
import { commands } from "../../support/commands.ts";
import type { AccessList } from "../../../src/core/permit/access.ts";
import type { Command, Target } from "../../../src/registry/define.ts";
import type { Person } from "../../../src/registry/invocation.ts";
import { terms } from "../../support/commands.ts";

export const ourTeamId = "T0OURS";

export const accessLists: readonly AccessList[] = [
  "view",
  "operate",
  "approve",
  "administer",
  "breakGlass",
];

/** Whether Gatehouse takes these rules: a random entry of `approvals` may leave nothing to the next. */
export const isPolicy = (yaml: string) => "policy" in parsePolicy(yaml, "gatehouse.yml", terms);

/** Parses a policy. Throws when it has problems. */
export function policyOf(yaml: string): Policy {
  const read = parsePolicy(yaml, "gatehouse.yml", terms);
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

/** Finds a command by its name. Throws when there is none. */
export function command(name: string): Command {
  const found = commands.find((one) => one.name === name);
  if (!found) throw new Error(`no command ${name}`);
  return found;
}

/** VMs within a project, as rules judge them. */
export const vmsCalled = (...names: string[]) => names.map((name) => ({ id: `vm-${name}`, name }));
