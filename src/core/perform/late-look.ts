import { ComputeError } from "../../fleet/compute/compute.ts";
import { type Message } from "../../messages/blocks.ts";
import { card } from "../../messages/card.ts";
import { md, name } from "../../messages/markdown.ts";
import type { PendingWork } from "../../queue/pending-work.ts";
import type { Seen } from "../../registry/define.ts";
import { callOf, noSetbacks } from "../request/stage.ts";
import type { RequestIn, StoredRequest } from "../request/stored-request.ts";
import { statusOf } from "../request/seen.ts";
import { isUnsettled } from "./judge.ts";
import { readTarget } from "./read-target.ts";
import { changeOf, lateLookMs } from "./step.ts";
import type { WorkerContext } from "./worker-context.ts";

/** A target that is still changing after so many quiet periods is left alone. */
const mostQuiets = 10;
const maxOthers = 20;

/**
 * Looks late, and once, at a request that ended as not applied. A service that holds a call back
 * for longer than the quiet period may apply it after all, which Gatehouse can't prevent. It is
 * told once, in the thread and in the trail, and the card says done from then on.
 */
export function lateLookWork(
  contextNow: () => WorkerContext,
  postNotice: (request: StoredRequest, message: Message) => Promise<unknown>,
): PendingWork {
  return {
    pending: contextNow().store.lates,
    async handle(id) {
      await lookLate(id, contextNow(), postNotice);
      return undefined;
    },
  };
}

async function lookLate(
  id: string,
  worker: WorkerContext,
  postNotice: (request: StoredRequest, message: Message) => Promise<unknown>,
): Promise<void> {
  const { store, policy } = worker;
  const request = await store.get(id);
  if (request?.state !== "not-applied") return store.lates.remove(id);
  const change = changeOf(request.record, worker.commands);
  if (!change || (await isExplained(request, worker))) return store.lates.remove(id);
  const ageMs = (await store.now()) - request.changedAt;
  const wholeMs = lateLookMs(policy.timing);
  // When Redis's clock was set back, everything that was put off is due at once, and a look that
  // comes too early sees nothing.
  if (ageMs < wholeMs) return store.lates.later(id, Math.min(wholeMs, wholeMs - ageMs));
  const read = await readOrNothing(request, worker);
  if (!read) return store.lates.later(id, policy.timing.pollMostMs);
  const { seen } = read;
  const { call, reads } = request.stage;
  const { before } = call;
  const { effect } = change;
  // The effect is of the same command, so it takes these arguments.
  const args = change.args as never;
  const isLate = ageMs > mostQuiets * policy.timing.quiesceMs;
  if (isUnsettled(seen) && !isLate) return store.lates.later(id, policy.timing.stableGapMs);
  const isApplied =
    effect.wanted(seen, before, args) &&
    !effect.hides?.(seen, args) &&
    !effect.untouched?.(seen, before, args);
  if (isApplied && !(await isExplained(request, worker))) {
    // This comes before the move. A notice has an ID, so it is told once, however often this
    // begins.
    await postNotice(request, renderLateEffect(request, seen));
    const { target } = request.record;
    await store.note({ what: "late-effect", request: id, target, status: statusOf(seen) });
    const why = `took effect late: read ${statusOf(seen)}`;
    const after = seen === undefined ? {} : { after: seen };
    const to = { state: "done", why, setbacks: noSetbacks, call, reads, ...after } as const;
    await store.move(request, { to, why });
  }
  await store.lates.remove(id);
}

/** A later change of the target may be the cause instead. */
async function isExplained(
  request: RequestIn<"not-applied">,
  { store }: WorkerContext,
): Promise<boolean> {
  const { id, projectId } = request.record.target;
  const places = [...new Set([id, projectId])].map((targetId) =>
    store.recentIds({ targetId }, maxOthers),
  );
  const others = await store.getMany([...new Set((await Promise.all(places)).flat())]);
  return others.some(
    (other) =>
      other.record.id !== request.record.id &&
      (callOf(other.stage)?.sentAt ?? 0) > request.stage.call.sentAt,
  );
}

/** Reads the target. Undefined where the compute service can't be read; nothing is decided then. */
async function readOrNothing({ record }: StoredRequest, worker: WorkerContext) {
  try {
    return await readTarget(record.target, worker);
  } catch (error) {
    if (!(error instanceof ComputeError)) throw error;
    return undefined;
  }
}

export function renderLateEffect({ record }: StoredRequest, seen: Seen | undefined): Message {
  return card({
    sign: "⚠️",
    title: md`*${record.target.name}* is ${statusOf(seen)} by now: ${record.command} took effect late.`,
    lines: [
      md`Two reads after the quiet period had shown no effect of ${name(record.id)}, so it was told as not applied. The compute service had held the call back.`,
    ],
  });
}
