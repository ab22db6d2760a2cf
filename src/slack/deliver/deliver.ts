import { within } from "../../deadline.ts";
import { during, type Work, workOnRequests } from "../../log/ids.ts";
import { createTakeDue, type Outbox } from "../../redis/due-list.ts";
import type { RedisClient } from "../../redis/redis.ts";
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
  /** Claims nothing more, and waits for what is in flight. */
  close(deadlineMs: number): Promise<void>;
}

/** What messages are about: requests, shared cards, rollouts or notices. */
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
  /** Posting them changes nothing of what is owed, nor of what follows: they are not read again after each. */
  isWhole?: boolean;
  /** Once all are posted. At least once. */
  afterwards?: () => Promise<void>;
  /** What is kept of it from then on, in place of what stands in these fields. */
  kept?: Record<string, string> | undefined;
}

interface Post {
  source: Source;
  inFlight: Map<string, Promise<void>>;
  /** Of those in flight: put on the outbox again since they were read. */
  rung: Set<string>;
}

/** The delay of what only another version can deliver (ms). */
const notOursMs = 1000;

type Options = Parameters<typeof createPostOnce>[0] & {
  redis: RedisClient;
  /** How often it looks for what other processes left (ms). What this one puts on an outbox, it is told of. */
  everyMs: number;
};

export function startDelivery(sources: readonly Source[], options: Options): Delivery {
  const { log, everyMs } = options;
  const postOnce = createPostOnce(options);
  const takeDue = createTakeDue(options.redis);
  const closing = new AbortController();
  let woken = Promise.withResolvers<void>();
  const wake = () => woken.resolve();
  const posts: readonly Post[] = sources.map((source) => ({
    source,
    inFlight: new Map(),
    rung: new Set(),
  }));
  for (const { source, inFlight, rung } of posts)
    source.outbox.onRing((id) => {
      // What is being delivered here is read again before it is done
      if (id === undefined || !inFlight.has(id)) wake();
      else rung.add(id);
    });
  const running = loop();
  return {
    async close(deadlineMs) {
      closing.abort();
      wake();
      await within(deadlineMs, running, () => undefined);
    },
  };

  /** Claims what is due; this process never delivers one id concurrently. */
  async function loop(): Promise<void> {
    while (!closing.signal.aborted) {
      let pauseMs = everyMs;
      try {
        const { ids, nextMs = everyMs } = await takeDue(
          posts.map(({ source: { outbox, atOnce, visibilityTimeoutMs }, inFlight }) => ({
            list: outbox.list,
            most: atOnce - inFlight.size,
            visibilityTimeoutMs,
          })),
        );
        for (const [n, post] of posts.entries()) for (const id of ids[n] ?? []) begin(post, id);
        pauseMs = Math.min(nextMs, everyMs);
      } catch {
        // Redis is unavailable: its connection reports it, and the outboxes persist
      }
      if (pauseMs > 0 && !closing.signal.aborted) await pause(pauseMs);
    }
    await Promise.all(posts.flatMap(({ inFlight }) => [...inFlight.values()]));
  }

  function begin(post: Post, id: string): void {
    const { source, inFlight, rung } = post;
    const before = inFlight.get(id) ?? Promise.resolve();
    const mine = before
      .then(() => deliver(post, id))
      .catch((error: unknown) => log.error("delivery.failed", { [source.kind]: id, error }))
      .finally(() => {
        if (inFlight.get(id) !== mine) return;
        inFlight.delete(id);
        // There is room again, or this id is due again
        if (rung.delete(id) || inFlight.size + 1 >= source.atOnce) wake();
      });
    inFlight.set(id, mine);
  }

  async function pause(ms: number): Promise<void> {
    const timer = setTimeout(wake, ms);
    await woken.promise;
    clearTimeout(timer);
    woken = Promise.withResolvers<void>();
  }

  async function deliver({ source: whole, rung }: Post, id: string): Promise<void> {
    const { outbox, read, visibilityTimeoutMs, ...source } = whole;
    const later = async (ms: number) => {
      await outbox.later(id, ms);
      setTimeout(wake, ms).unref();
    };
    for (;;) {
      rung.delete(id);
      const owes = await read(id);
      if (!owes) {
        if (!(await outbox.done(id, -1))) await later(notOursMs);
        return;
      }
      const { createdAt, revision, work = workOnRequests([]) } = owes;
      const subject = { ...source, id, createdAt, outbox };
      const waitMs = await during(work, () => postAll(subject, owes));
      if (waitMs > 0) return later(waitMs);
      if (waitMs < 0) continue;
      await owes.afterwards?.();
      if (owes.waitMs) return later(owes.waitMs);
      // Changed meanwhile: it stays this process's, and is read again
      if (await outbox.done(id, revision, visibilityTimeoutMs, owes.kept)) return;
    }
  }

  /** In how many milliseconds it goes on, 0 when all is said, below 0 when it is to be read again. */
  async function postAll(
    subject: Parameters<typeof postOnce>[0],
    { messages, isWhole }: Owes,
  ): Promise<number> {
    // What is said first comes before what is shown: an edit that waits must not hold up a result
    const owed = [
      ...messages.filter(({ mark }) => !isSaid(mark)),
      ...messages.filter((one) => isSaid(one.mark) && isOutdated(one)),
    ];
    for (const one of owed) {
      const waitMs = await postOnce(subject, one);
      if (waitMs !== 0) return waitMs;
      if (!isWhole) return -1;
    }
    return 0;
  }
}

function isOutdated(owed: Owed): boolean {
  const shows = "shows" in owed ? owed.shows : undefined;
  return shows?.standsAt !== undefined && shows.before !== shows.now;
}
