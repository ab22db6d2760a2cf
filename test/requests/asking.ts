import { restart } from "../../src/commands/vm/restart.ts";
import type { Policy } from "../../src/config/policy-file.ts";
import type { Keys, RedisClient } from "../../src/redis/redis.ts";
import type { Input, Person } from "../../src/registry/invocation.ts";
import type { ChangeCommand, Target } from "../../src/registry/define.ts";
import type { StoredRequest } from "../../src/requests/journal/record.ts";
import { type Journal, newNonce } from "../../src/requests/journal/journal.ts";
import type { Origin } from "../../src/requests/journal/origin.ts";
import { submit, type Details } from "../../src/requests/submit/submit.ts";
import { policyOf } from "../policy/sample.ts";
import { permitFor, type WantedApprovals } from "../support/permits.ts";

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

/** What somebody asked for, and is permitted. */
export interface Submission extends Omit<Details, "forApprovers" | "channelId"> {
  command: ChangeCommand;
  input: Input;
  target: Target;
  person: Person;
  channelId: string;
  origin: Origin;
  breakGlass?: boolean;
  /** Without it, the request runs at once. */
  approval?: WantedApprovals & NonNullable<Details["forApprovers"]>;
}

/** One approval, of these people and groups. */
export const oneOf = (from: readonly string[]): NonNullable<Submission["approval"]> => ({
  required: 1,
  votes: [{ from, required: 1 }],
  expiresMs: 60_000,
  evidence: [["Current status", "RUNNING"]],
});

/** A restart that needs approvals; each call is another ask. */
export function restartOf(target: Target, over: Partial<Submission> = {}): Submission {
  asked += 1;
  return {
    command: restart,
    input: { vms: [target.id] },
    target,
    person: member("U0OLIVIA"),
    channelId: "C01OPS",
    origin: { kind: "typed", interaction: `ask-${asked}` },
    approval: {
      required: 1,
      expiresMs: 60_000,
      evidence: [["Current status", "RUNNING"]],
    },
    ...over,
  };
}

/** A restart that a worker has claimed, without approvals. */
export async function claimedRestart(store: Journal, vm: string): Promise<StoredRequest> {
  const { approval: _none, ...submission } = restartOf(vmTarget(vm));
  return claimedBy("w-here", await interaction(store, submission), store);
}

/** Writes it down and reads it back. */
export async function interaction(store: Journal, submission: Submission): Promise<StoredRequest> {
  const { command, input, target, person, channelId, origin, breakGlass, approval, ...more } =
    submission;
  const basis = breakGlass ? ({ kind: "break-glass" } as const) : undefined;
  const question = { command, input, target, person, channelId, ...(basis ? { basis } : {}) };
  const permit = permitFor({ ...question, approvals: approval }, policy);
  const {
    required: _n,
    votes: _who,
    expiresMs: _ms,
    ...forApprovers
  } = approval ?? { evidence: [] };
  const details = { ...more, ...(approval ? { forApprovers } : {}) };
  const by = { store, policy, policyVersion: "v1", staleAfterMs: 60_000 };
  const made = await submit(permit, origin, details, by);
  const request = await store.get(made.id);
  if (!request) throw new Error(`${made.id} is not there`);
  return request;
}

interface StoredInteraction {
  redis: RedisClient;
  key: Keys;
  store: Journal;
}

/** A worker's claim of the first attempt. */
export async function claimedBy(
  owner: string,
  request: StoredRequest,
  store: Journal,
): Promise<StoredRequest> {
  const claimed = await store.move(request, {
    state: "sending",
    attempt: 1,
    owner,
    progress: { sentAt: await store.now() },
    why: "claimed",
    claim: { vmIds: [], nonce: newNonce() },
  });
  if (claimed.is !== "moved") throw new Error(claimed.is);
  return claimed.request;
}

/** What the returned function does to a request: Redis fails over to a replica that has nothing after this. */
export async function failover(
  { redis, key }: StoredInteraction,
  request: StoredRequest,
): Promise<() => Promise<unknown>> {
  const hash = key("request", request.record.id);
  const before = await redis.dumpBuffer(hash);
  return () => redis.restore(hash, 0, before, "REPLACE");
}

/** Two workers claim the same attempt, because in between Redis fails over to a replica without the first claim. */
export async function claimedTwice(
  kept: StoredInteraction,
  request: StoredRequest,
): Promise<[lost: StoredRequest, other: StoredRequest]> {
  const failOver = await failover(kept, request);
  const lost = await claimedBy("w-1", request, kept.store);
  await failOver();
  return [lost, await claimedBy("w-2", request, kept.store)];
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
