import { restart } from "../../src/commands/vm/restart.ts";
import type { Policy } from "../../src/policy-file.ts";
import type { Person } from "../../src/registry/person.ts";
import type { Target } from "../../src/registry/target.ts";
import type { StoredRequest } from "../../src/requests/record.ts";
import type { Store } from "../../src/requests/store.ts";
import { submit, type Submission } from "../../src/requests/submit.ts";
import { policyOf } from "../policy/sample.ts";

export const ourTeamId = "T0OURS";

export const policy: Policy = policyOf(`
access:
  view: ["*"]
  operate: ["U0OLIVIA", "U0ADA"]
  approve: ["U0AMIR", "U0ADA", "U0BEA", "U0CARL"]
  administer: ["U0ADA"]
timing: { approvalExpires: 1m }
`);

export function member(id: string, over: Partial<Person> = {}): Person {
  return {
    id,
    teamId: ourTeamId,
    name: id.slice(2).toLowerCase(),
    kind: "member",
    groups: [],
    ...over,
  };
}

export function vmTarget(name: string, over: Partial<Target> = {}): Target {
  return {
    kind: "vm",
    id: `vm-payments-${name}`,
    name,
    projectId: "prj-payments",
    projectName: "payments",
    status: "RUNNING",
    ...over,
  };
}

let asked = 0;

/** A restart that needs approvals; each call is another ask. */
export function restartOf(target: Target, over: Partial<Submission> = {}): Submission {
  asked += 1;
  return {
    command: restart,
    input: { vms: [target.id] },
    target,
    person: member("U0OLIVIA"),
    channelId: "C01OPS",
    via: "command",
    askId: `ask-${asked}`,
    approval: {
      required: 1,
      expiresMs: 60_000,
      why: "the rule",
      evidence: [["State now", "RUNNING"]],
    },
    ...over,
  };
}

/** Writes it down and reads it back. */
export async function ask(store: Store, submission: Submission): Promise<StoredRequest> {
  const made = await submit(submission, {
    store,
    policyVersion: "v1",
    staleAfterMs: 60_000,
    wake: async () => undefined,
  });
  const request = await store.get(made.id);
  if (!request) throw new Error(`${made.id} is not there`);
  return request;
}

/** What the audit trail holds, oldest first. */
export async function auditOf(
  client: { xrange(key: string, from: string, to: string): Promise<[string, string[]][]> },
  auditKey: string,
): Promise<Record<string, unknown>[]> {
  const rows = await client.xrange(auditKey, "-", "+");
  return rows.map(([, fields]) => {
    const record = fields[fields.indexOf("record") + 1] ?? "{}";
    return JSON.parse(record) as Record<string, unknown>;
  });
}
