import { during, type Work, workOnRequests } from "../../log/ids.ts";
import { type Dispatcher, startDispatcher } from "../../redis/dispatcher.ts";
import type { Outbox } from "../../redis/due-list.ts";
import type { Fields } from "../../redis/redis.ts";
import { createPostOnce, isSaid, type Owed, type Subject } from "./post-once.ts";

/** What messages are about: requests, shared cards, rollouts or notices. */
export interface Source extends Pick<Subject, "kind" | "at"> {
  outbox: Outbox;
  /** How many at a time. */
  atOnce: number;
  visibilityTimeoutMs: number;
  /** What is owed as its hash says; undefined for what is gone, or for another process to deliver: it knows the command. */
  read(id: string, fields: Fields): Promise<Owes | undefined>;
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

/** The delay of what only another process can deliver (ms). */
const notOursMs = 1000;

/**
 * Outbox dispatcher: posts what Slack lacks. Each source has an outbox of ids whose messages may be behind, each due at a
 * Redis time.
 *
 *     due ──► claimed, under a visibility timeout ──► read ──► the first message owed is posted, and all is read again
 *                                                        └────► nothing owed: done, or read again when it changed meanwhile
 *     due again   later, when Slack limits, an answer was lost, or another process has it
 *                 after the visibility timeout, when the process died
 *
 * So two processes may work on one id, and any may stop anywhere: the marks of `createPostOnce` keep them apart.
 * `everyMs`: how often it looks for what other processes left. What this one puts on an outbox, it knows at once.
 */
export function startDelivery(
  sources: readonly Source[],
  options: Parameters<typeof createPostOnce>[0] & { everyMs: number },
): Dispatcher {
  const postOnce = createPostOnce(options);

  async function deliver(source: Source, id: string): Promise<number | undefined> {
    const { outbox, visibilityTimeoutMs, kind, at } = source;
    for (;;) {
      const fields = await outbox.get(id);
      const owes = await source.read(id, fields);
      if (!owes && Object.keys(fields).length > 0) return later(notOursMs);
      if (!owes) {
        await outbox.remove(id);
        return undefined;
      }
      const { createdAt, revision, messages, waitMs = 0 } = owes;
      const [owed] = inOrder(messages);
      if (!owed && waitMs === 0) {
        if (await outbox.done(id, revision, visibilityTimeoutMs)) return undefined;
        continue;
      }
      const post = () => (owed ? postOnce({ kind, at, id, createdAt, outbox }, owed) : waitMs);
      const dueInMs = await during(owes.work ?? workOnRequests([]), async () => post());
      if (dueInMs > 0) return later(dueInMs);
    }

    async function later(ms: number): Promise<number> {
      await outbox.later(id, ms);
      return ms;
    }
  }

  return startDispatcher(
    sources.map((source) => ({
      name: "delivery",
      of: source.kind,
      due: source.outbox,
      atOnce: source.atOnce,
      visibilityTimeoutMs: () => source.visibilityTimeoutMs,
      handle: (id) => deliver(source, id),
    })),
    { everyMs: () => options.everyMs, log: options.log },
  );
}

/** What is said first comes before what is shown: an edit that waits must not hold up a result. */
function inOrder(messages: readonly Owed[]): Owed[] {
  return [
    ...messages.filter(({ mark }) => !isSaid(mark)),
    ...messages.filter((one) => isSaid(one.mark) && isOutdated(one)),
  ];
}

function isOutdated(owed: Owed): boolean {
  const shows = "shows" in owed ? owed.shows : undefined;
  return shows?.standsAt !== undefined && shows.before !== shows.now;
}
