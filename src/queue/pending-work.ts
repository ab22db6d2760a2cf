import { DelayedError } from "bullmq";
import { within } from "../deadline.ts";
import type { Log } from "../log/log.ts";
import type { Due, Pending } from "../redis/pending.ts";
import { type RedisClient, redisTrouble } from "../redis/redis.ts";
import type { PendingQueue } from "./queues.ts";
import { startQueueWorker } from "./queue-worker.ts";

/** The handler for the IDs of one kind. */
export interface PendingWork {
  pending: Pending;
  /**
   * When it ends, the ID is off the list or due later. `mark` is the ID's score while this runs.
   * Resolves with when the ID is due, as `Pending.release` does.
   */
  handle(id: string, mark: string): Promise<Due | undefined>;
}

/**
 * The longest time that a process waits itself for an ID that it noted (ms). When it dies meanwhile,
 * the relay needs no longer than for an ID that it had in hand.
 */
const shortWaitMs = 2_000;

/**
 * Works on the pending list, once `take` was called on the result. The list says when an ID is due.
 * The process that notes an ID may handle it at once (`handleHere`), and waits for it itself while
 * that takes no longer than two seconds. Any other wake-up is a job of the queue: for a process that doesn't
 * handle the kind, for a longer wait, and from the relay. A job that comes too early is delayed. At
 * most one process has an ID in hand, and takes it once more when it was woken meanwhile. An ID whose
 * handler throws stays on the list, and the relay adds its job again.
 */
export function startPendingWork(
  works: readonly PendingWork[],
  options: {
    queue: PendingQueue;
    /** Adds a job (`queues.wake`). */
    wake(kind: string, id: string, inMs?: number): Promise<void>;
    connection: RedisClient;
    prefix: string;
    concurrency: number;
    heartbeatMs: number;
    log: Log;
  },
) {
  const byKind = new Map<string, PendingWork>(works.map((work) => [work.pending.kind, work]));
  /** The IDs that this process has in hand, or that wait for a free place. */
  const inHand = new Map<string, Promise<Due | undefined>>();
  /** Those of them that were woken since they were last taken. */
  const woken = new Set<string>();
  const waiting = new Map<string, { kind: string; id: string; timer: NodeJS.Timeout }>();
  const turns: (() => void)[] = [];
  let free = options.concurrency;
  let isClosing = false;

  async function inTurn<T>(task: () => Promise<T>): Promise<T> {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => turns.push(resolve));
    try {
      return await task();
    } finally {
      const next = turns.shift();
      if (next) next();
      else free += 1;
    }
  }

  /** Begins with the ID. One that is in hand already is taken once more. */
  function handleDue(work: PendingWork, id: string): Promise<Due | undefined> {
    const member = work.pending.memberOf(id);
    clearTimeout(waiting.get(member)?.timer);
    waiting.delete(member);
    woken.add(member);
    const ended = inHand.get(member) ?? handleWhileDue(work, id);
    inHand.set(member, ended);
    return ended;
  }

  /**
   * Handles the ID for as long as it is due. Each time it waits for its turn, so that what happened
   * meanwhile is handled at once, and an ID that many wake doesn't hold up others.
   */
  async function handleWhileDue(work: PendingWork, id: string): Promise<Due | undefined> {
    const member = work.pending.memberOf(id);
    try {
      for (;;) {
        const due = await inTurn(() => handleOnce(work, id));
        const isDueNow = due !== undefined && due.waitMs <= 0;
        // A wake-up may have come after Redis had answered.
        if (!isDueNow && !woken.has(member)) return due;
      }
    } finally {
      inHand.delete(member);
    }
  }

  async function handleOnce({ pending, handle }: PendingWork, id: string) {
    woken.delete(pending.memberOf(id));
    const taken = await pending.take(id);
    if (taken === undefined || "isBusy" in taken) return undefined;
    return "mark" in taken ? handle(id, taken.mark) : taken;
  }

  async function handleNoted(work: PendingWork, id: string): Promise<void> {
    const { kind, memberOf } = work.pending;
    try {
      const later = await handleDue(work, id);
      if (!later) return;
      const { waitMs } = later;
      if (waitMs > shortWaitMs || !takesNoted()) return await options.wake(kind, id, waitMs);
      clearTimeout(waiting.get(memberOf(id))?.timer);
      const timer = setTimeout(() => noteHere(kind, id), waitMs);
      waiting.set(memberOf(id), { kind, id, timer });
    } catch (error) {
      // Without Redis, its connection reports the problem. The relay adds a job later.
      if (redisTrouble(error) === undefined)
        options.log.error("queue.work-failed", { kind, id, error });
    }
  }

  const takesNoted = (): boolean => !isClosing && !worker.isHeld();

  /** False when this process doesn't handle the kind, or takes nothing now. */
  function handleHere(kind: string, id: string): boolean {
    const work = byKind.get(kind);
    if (work === undefined || !takesNoted()) return false;
    void handleNoted(work, id);
    return true;
  }

  function noteHere(kind: string, id: string): void {
    waiting.delete(`${kind} ${id}`);
    if (!handleHere(kind, id)) void options.wake(kind, id).catch(() => undefined);
  }

  /** Leaves to other processes what this one waits for. */
  async function leaveWaiting(): Promise<void> {
    const left = [...waiting.values()];
    waiting.clear();
    for (const { timer } of left) clearTimeout(timer);
    await Promise.all(left.map(({ kind, id }) => options.wake(kind, id).catch(() => undefined)));
  }

  const worker = startQueueWorker({
    ...options,
    subjectOf: ({ data }) => ({ ...data }),
    async process(job, token) {
      const { kind, id } = job.data;
      const work = byKind.get(kind);
      if (!work) return;
      for (;;) {
        const later = await handleDue(work, id);
        if (!later) return;
        await job.moveToDelayed(Date.now() + later.waitMs, token);
        // BullMQ holds back a job that is added during this one until this one ends, and being
        // delayed isn't an end. So a wake-up that came meanwhile is repeated.
        const dueAt = await work.pending.dueAt(id);
        if (dueAt !== undefined && dueAt < later.dueAt) await options.wake(kind, id);
        throw new DelayedError();
      }
    },
  });

  return {
    ...worker,
    handleHere,
    async hold(): Promise<void> {
      await worker.hold();
      await leaveWaiting();
    },
    /** Takes no more, and waits at most `deadlineMs` for what is in hand. */
    async close(deadlineMs: number): Promise<void> {
      isClosing = true;
      const handled = Promise.allSettled(inHand.values());
      await Promise.all([worker.close(deadlineMs), within(deadlineMs, handled, () => undefined)]);
      await leaveWaiting();
    },
  };
}
