import { takesSnapshot } from "../../registry/define.ts";
import { permitSafetySnapshot } from "../permit/permit.ts";
import { type Call, type SafetySnapshot, callOf, holderOf, whyOf } from "../request/stage.ts";
import type { RequestIn, StoredRequest } from "../request/stored-request.ts";
import { submit } from "../submit/submit.ts";
import type { Change, Stop } from "./step.ts";
import type { WorkerContext } from "./worker-context.ts";

const withoutSnapshot =
  "Request again; tick “Don't take a safety snapshot first” to continue without one.";

/**
 * Data may be replaced: either a snapshot of the present data exists, or the requester declined
 * one.
 */
interface Safe {
  kind: "safe";
  snapshot?: SafetySnapshot;
}

/** After this time a safety snapshot is old, because too much may have been written since (ms). */
const freshMs = 60_000;
/** The most safety snapshots that are taken for one request. */
const mostTakes = 3;

/**
 * Takes a snapshot before data is replaced, unless the dialog declined it. It is a request of its own, made once however
 * often this runs. It holds no lock for the request that waits for it, so an outdated one is taken again.
 */
export async function withSafetySnapshot(
  request: RequestIn<"authorized">,
  { command, args }: Change,
  worker: WorkerContext,
): Promise<Safe | Stop> {
  if (command.safetyFirst?.(args) !== true) return { kind: "safe" };
  const no = (why: string): Stop => ({ kind: "closed", why, hint: withoutSnapshot });
  const id = request.stage.safetyRequest ?? (await submitSnapshot(request, 1, worker));
  if (id === undefined) return no("this version can't take a safety snapshot");
  const taken = await worker.store.get(id);
  if (!taken) return no("its safety snapshot is lost");
  if (taken.state === "unknown") return no("whether the safety snapshot was taken is unknown");
  if (!taken.final) {
    // The snapshot has no card, so the card of its request says what both wait for.
    const holder = request.stage.safetyRequest === id ? holderOf(taken.stage) : undefined;
    if (holder) return { kind: "locked", holder: holder.request };
    return { kind: "later", why: takenFirst, safetyRequest: id };
  }
  if (taken.state !== "done") {
    const reason = whyOf(taken.stage);
    const why = reason === undefined ? "" : `: ${reason}`;
    return no(`the safety snapshot was not taken${why}`);
  }
  const { call } = taken.stage;
  if (call?.answer?.snapshotId === undefined)
    return no("the safety snapshot got no ID, so it can't be restored");
  const take = takeOf(taken);
  if (take < mostTakes && (await isOutdated(taken, call, request, worker))) {
    const safetyRequest = await submitSnapshot(request, take + 1, worker);
    if (safetyRequest !== undefined) return { kind: "later", why: takenFirst, safetyRequest };
  }
  const { snapshotId } = call.answer;
  return { kind: "safe", snapshot: { request: id, snapshotId, at: call.sentAt } };
}

const takenFirst = "a safety snapshot is taken first";

const takeOf = ({ record: { origin } }: StoredRequest): number =>
  (origin.kind === "safety" && origin.take) || 1;

/** The newest requests on the target that are read to find one that was sent since. */
const readOfTarget = 20;

/**
 * Whether an undo would lose what happened after the snapshot: another request was sent to the
 * target since, or the snapshot is old. Age counts once, because a second snapshot that is old again
 * shows that the compute service is slow, and a third would be as old.
 */
async function isOutdated(
  taken: StoredRequest,
  { sentAt, endedAt = sentAt }: Call,
  { record }: RequestIn<"authorized">,
  { store }: Pick<WorkerContext, "store">,
): Promise<boolean> {
  if (takeOf(taken) === 1 && (await store.now()) - endedAt > freshMs) return true;
  const ids = await store.recentIds({ targetId: record.target.id }, readOfTarget);
  const others = ids.filter((id) => id !== record.id && id !== taken.record.id);
  return (await store.getMany(others)).some(
    ({ stage }) => (callOf(stage)?.sentAt ?? -Infinity) > sentAt,
  );
}

async function submitSnapshot(
  request: StoredRequest,
  take: number,
  worker: WorkerContext,
): Promise<string | undefined> {
  const { record } = request;
  const snapshot = worker.commands.find(takesSnapshot);
  if (!snapshot) return undefined;
  const permit = permitSafetySnapshot(record, snapshot, worker, take);
  const again = take > 1 ? { take } : {};
  const origin = { kind: "safety", request: record.id, ...again } as const;
  const { staleAfterMs } = worker.policy.timing;
  const submitted = await submit(permit, origin, {}, { ...worker, staleAfterMs });
  return submitted.id;
}
