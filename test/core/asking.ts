import { restart } from "../../src/commands/vm/restart.ts";
import type { Policy } from "../../src/config/policy-file.ts";
import type { Keys, RedisClient } from "../../src/redis/redis.ts";
import type { Input, Person } from "../../src/registry/invocation.ts";
import type { ChangeCommand, Target } from "../../src/registry/define.ts";
import { type State, callOf } from "../../src/core/request/stage.ts";
import { called, vmTarget } from "../../demo/cards/requests.ts";
import type { RequestIn, StoredRequest } from "../../src/core/request/stored-request.ts";
import { type Journal, newNonce } from "../../src/core/request/journal.ts";
import type { Moved } from "../../src/core/request/move-request.ts";
import type { Origin } from "../../src/core/request/origin.ts";
import { submit, type Details } from "../../src/core/submit/submit.ts";
import { policyOf } from "./permit/sample.ts";
import { permitFor, type WantedApprovals } from "../support/permits.ts";

export { type Rest, called, stageOf, storedIn, vmTarget } from "../../demo/cards/requests.ts";

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

let asked = 0;

/** A request that somebody made and that is permitted. */
export interface Submission extends Omit<Details, "forApprovers" | "channelId"> {
  command: ChangeCommand;
  input: Input;
  target: Target;
  person: Person;
  channelId: string;
  origin: Origin;
  breakGlass?: boolean;
  /** The request runs at once when this is missing. */
  approval?: WantedApprovals & NonNullable<Details["forApprovers"]>;
}

/** Requires one approval, which these people and groups may give. */
export const oneOf = (from: readonly string[]): NonNullable<Submission["approval"]> => ({
  required: 1,
  votes: [{ from, required: 1 }],
  expiresMs: 60_000,
  evidence: [["Current status", "RUNNING"]],
});

/** Returns a restart that needs approvals. Each call makes another request. */
export function restartOf(
  target: Target,
  over: Partial<Submission> = {},
): Submission & Required<Pick<Submission, "approval">> {
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

/** Narrows a request to these states. Throws when it is in another state, or is gone. */
export function requestIn<In extends State>(
  request: StoredRequest | undefined,
  ...states: readonly In[]
): RequestIn<In> {
  if (!request) throw new Error("it is gone");
  const { record, state } = request;
  if (!states.some((expected) => expected === state))
    throw new Error(`${record.id} is ${state}, not ${states.join(" or ")}`);
  return request as unknown as RequestIn<In>;
}

/** Resolves with the moved request. Throws when it was not moved. */
export async function movedBy<To extends State>(
  moving: Promise<Moved<To>>,
): Promise<RequestIn<To>> {
  const moved = await moving;
  if (moved.kind !== "moved") throw new Error(`it was not moved: ${moved.kind}`);
  return moved.request;
}

/** Returns the ID of the snapshot that a request took, or '' when it took none. */
export const snapshotIdOf = ({ stage }: StoredRequest): string =>
  callOf(stage)?.answer?.snapshotId ?? "";

/** Stores a restart without approvals that a worker has claimed. */
export async function claimedRestart(store: Journal, vm: string): Promise<RequestIn<"sending">> {
  const { approval: _none, ...submission } = restartOf(vmTarget(vm));
  return claimedBy("w-here", await storeRequest(store, submission), store);
}

/** The state in which a submission is stored. It is a draft when it needs approvals. */
type FirstState<S extends Submission> = "approval" extends keyof S
  ? S extends { approval: object }
    ? "draft"
    : "draft" | "authorized"
  : "authorized";

/** Stores a submission and resolves with the stored request. */
export async function storeRequest<S extends Submission>(
  store: Journal,
  submission: S,
): Promise<RequestIn<FirstState<S>>> {
  const { command, input, target, person, channelId, origin, breakGlass, approval, ...more } =
    submission as Submission;
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
  const request = requestIn(await store.get(made.id), "draft", "authorized");
  return requestIn(request, approval ? "draft" : "authorized") as RequestIn<FirstState<S>>;
}

interface JournalInRedis {
  redis: RedisClient;
  key: Keys;
  store: Journal;
}

/** Claims the first attempt of a request for a worker. */
export async function claimedBy(
  owner: string,
  request: RequestIn<"authorized">,
  store: Journal,
): Promise<RequestIn<"sending">> {
  const to = { state: "sending", ...called({ sentAt: await store.now() }) } as const;
  const claim = { vmIds: [], nonce: newNonce() };
  return movedBy(store.move(request, { to, attempt: 1, owner, why: "claimed", claim }));
}

/**
 * Simulates a failover of Redis. The returned function gives the request back the state that it has
 * now, as on a replica that missed all later writes.
 */
export async function failover(
  { redis, key }: JournalInRedis,
  request: StoredRequest,
): Promise<() => Promise<unknown>> {
  const hash = key("request", request.record.id);
  const before = await redis.dumpBuffer(hash);
  return () => redis.restore(hash, 0, before, "REPLACE");
}

/**
 * Lets two workers claim the same attempt, because Redis fails over in between to a replica without
 * the first claim.
 */
export async function claimedTwice(
  journal: JournalInRedis,
  request: RequestIn<"authorized">,
): Promise<[lost: RequestIn<"sending">, other: RequestIn<"sending">]> {
  const failOver = await failover(journal, request);
  const lost = await claimedBy("w-1", request, journal.store);
  await failOver();
  return [lost, await claimedBy("w-2", request, journal.store)];
}

/** Reads all records of the audit trail, oldest first. */
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
