import { within } from "../../deadline.ts";
import { during, type Work } from "../../log/ids.ts";
import type { Outbox } from "../../redis/due-list.ts";
import { createPostOnce, isSaid, type Owed, type Subject } from "./post-once.ts";

/**
 * Outbox dispatcher: posts what Slack lacks. Each source has an outbox of ids whose messages may be behind, each due at a
 * Redis time.
 *
 *     due ──► claimed, under a visibility timeout ──► read ──► the first message owed is posted, then read again
 *                                                       └────► nothing owed: done, or due now when it changed meanwhile
 *     due again   later, when Slack limits, an answer was lost, or another process has it
 *                 in a second, when it is for a newer version to deliver
 *                 after the visibility timeout, when the process died
 *
 * So two processes may work on one id, and any may stop anywhere: the marks of `createPostOnce` keep them apart.
 */
export interface Delivery {
  /** Something changed in this process: look now. */
  nudge(): void;
  /** Claims nothing more, and waits for what is in flight. */
  close(deadlineMs: number): Promise<void>;
}

/** What messages are about: requests, rollouts or notices. */
export interface Source extends Pick<Subject, "kind" | "at"> {
  outbox: Outbox;
  /** How many at a time. */
  atOnce: number;
  visibilityTimeoutMs: number;
  /** Reads what is owed now; undefined for what is gone, or is for another version to deliver. */
  read(id: string): Promise<Owes | undefined>;
}

export interface Owes {
  /** Redis time (ms). */
  createdAt: number;
  /** As read; 0 for what never changes. */
  revision: number;
  /** All its messages, posted or not, in order. */
  messages: readonly Owed[];
  /** What they are about, for the log and traces. */
  work?: Work;
  /** When to read again once all are posted (ms); 0 for never. */
  waitMs?: number;
}

/** The delay of what only another version can deliver (ms). */
const notOursMs = 1000;

type Options = Parameters<typeof createPostOnce>[0] & {
  /** How often an outbox is polled (ms). */
  everyMs: number;
};

export function startDelivery(sources: readonly Source[], options: Options): Delivery {
  const postOnce = createPostOnce(options);
  const dispatchers = sources.map((source) =>
    startDispatcher(source, (id) => deliver(source, id), options),
  );
  return {
    nudge: () => dispatchers.forEach(({ nudge }) => nudge()),
    async close(deadlineMs) {
      const all = Promise.all(dispatchers.map((one) => one.close()));
      await within(deadlineMs, all, () => undefined);
    },
  };

  async function deliver({ outbox, read, ...source }: Source, id: string): Promise<void> {
    for (;;) {
      const owes = await read(id);
      if (!owes) {
        if (!(await outbox.done(id, -1))) await outbox.later(id, notOursMs);
        return;
      }
      const { createdAt, revision, work = { ids: {}, parents: [] } } = owes;
      const owed = owes.messages.find(isOwed);
      const waitMs = owed
        ? await during(work, () => postOnce({ ...source, id, createdAt, outbox }, owed))
        : (owes.waitMs ?? 0);
      if (waitMs > 0) return outbox.later(id, waitMs);
      if (!owed) return void (await outbox.done(id, revision));
    }
  }
}

/** Not posted yet, or out of date. */
function isOwed(owed: Owed): boolean {
  if (!isSaid(owed.mark)) return true;
  const shows = "shows" in owed ? owed.shows : undefined;
  return shows?.standsAt !== undefined && shows.before !== shows.now;
}

/** Claims what is due; this process never delivers one id concurrently. */
function startDispatcher(
  { kind, outbox, atOnce, visibilityTimeoutMs }: Source,
  deliver: (id: string) => Promise<void>,
  { log, everyMs }: Options,
) {
  const closing = new AbortController();
  let nudged = Promise.withResolvers<void>();
  const inFlight = new Map<string, Promise<void>>();

  async function loop(): Promise<void> {
    while (!closing.signal.aborted) {
      let ids: string[] = [];
      const room = atOnce - inFlight.size;
      try {
        if (room > 0) ids = await outbox.take(room, visibilityTimeoutMs);
      } catch {
        // Redis is unavailable: its connection reports it, and the outbox persists
      }
      for (const id of ids) begin(id);
      if (ids.length === 0 && !closing.signal.aborted) await pause();
    }
    await Promise.all(inFlight.values());
  }

  function begin(id: string): void {
    const before = inFlight.get(id) ?? Promise.resolve();
    const mine = before
      .then(() => deliver(id))
      .catch((error: unknown) => log.error("delivery.failed", { [kind]: id, error }))
      .finally(() => {
        // There is room again, and this id may be due again
        if (inFlight.get(id) === mine) inFlight.delete(id);
        nudged.resolve();
      });
    inFlight.set(id, mine);
  }

  async function pause(): Promise<void> {
    const timer = setTimeout(() => nudged.resolve(), everyMs);
    await nudged.promise;
    clearTimeout(timer);
    nudged = Promise.withResolvers<void>();
  }

  const running = loop();
  return {
    nudge: () => nudged.resolve(),
    async close() {
      closing.abort();
      nudged.resolve();
      await running;
    },
  };
}
