import { within } from "../../deadline.ts";
import { during, type Work, workOnRequests } from "../../log/ids.ts";
import { createTakeDue, type Ended, type Ending, type Outbox } from "../../redis/due-list.ts";
import type { Fields, RedisClient } from "../../redis/redis.ts";
import { createPostOnce, isSaid, type Owed, type Subject } from "./post-once.ts";

/**
 * Outbox dispatcher: posts what Slack lacks. Each source has an outbox of ids whose messages may be behind, each due at a
 * Redis time.
 *
 *     due ──► claimed, under a visibility timeout, and read ──► the first message owed is posted, and all is read again
 *                                                         └────► nothing owed: done, or read again when it changed meanwhile
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
  /** What is owed as its hash stands; undefined for what is gone, or is for another version to deliver. */
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
  /** Posting them changes nothing of what is owed, nor of what follows: they are not read again after each. */
  isWhole?: boolean | undefined;
  /** Fields that say what the read has done: kept with what is written next. */
  noted?: Fields | undefined;
  /** Once all are posted, and where there is this key. At least once. */
  afterwards?: { where: string; run(): Promise<void> } | undefined;
  /** What is kept of it from then on, in place of what stands in these fields. */
  kept?: Fields | undefined;
}

interface Post {
  source: Source;
  inFlight: Map<string, Promise<void>>;
  /** Of those in flight: put on the outbox again since they were read. */
  rung: Set<string>;
}

/** What comes next of an ID: it is done, is due in so long (ms), or is told on as it came along. */
type Next = Ended | { is: "waits"; ms: number; said: Fields };

/** The delay of what only another version can deliver (ms). */
const notOursMs = 1000;

type Options = Parameters<typeof createPostOnce>[0] & {
  redis: RedisClient;
  /** How often it looks for what other processes left (ms). What this one puts on an outbox, it knows at once. */
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
        const { taken, nextMs = everyMs } = await takeDue(
          posts.map(({ source: { outbox, atOnce, visibilityTimeoutMs }, inFlight }) => ({
            list: outbox.list,
            most: atOnce - inFlight.size,
            visibilityTimeoutMs,
            hashes: outbox.hashes,
          })),
        );
        for (const [n, post] of posts.entries())
          for (const { id, fields } of taken[n] ?? []) begin(post, id, fields);
        pauseMs = Math.min(nextMs, everyMs);
      } catch {
        // Redis is unavailable: its connection reports it, and the outboxes persist
      }
      if (pauseMs > 0 && !closing.signal.aborted) await pause(pauseMs);
    }
    await Promise.all(posts.flatMap(({ inFlight }) => [...inFlight.values()]));
  }

  function begin(post: Post, id: string, fields: Fields | undefined): void {
    const { source, inFlight, rung } = post;
    const before = inFlight.get(id);
    // After another's end, what was taken with it is old
    const delivered = before ? before.then(() => deliver(post, id)) : deliver(post, id, fields);
    const mine = delivered
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

  function wakeIn(ms: number): void {
    setTimeout(wake, ms).unref();
  }

  async function deliver({ source, rung }: Post, id: string, taken?: Fields): Promise<void> {
    const { outbox } = source;
    let fields = taken;
    for (;;) {
      rung.delete(id);
      const owes = await source.read(id, fields ?? (await outbox.get(id)));
      if (!owes) {
        const { is } = await outbox.done(id, { revision: -1, elseInMs: notOursMs });
        return is === "done" ? undefined : wakeIn(notOursMs);
      }
      const next = await during(owes.work ?? workOnRequests([]), () => tell(source, id, owes));
      if (next.is === "waits") {
        await outbox.later(id, next.ms, next.said);
        return wakeIn(next.ms);
      }
      if (next.is !== "changed") return;
      ({ fields } = next);
    }
  }

  /** Posts what is owed. What is kept of it goes with what is written next, the last of it with the end. */
  async function tell(source: Source, id: string, owes: Owes): Promise<Next> {
    const { kind, at, outbox, visibilityTimeoutMs: elseInMs } = source;
    const { createdAt, revision, isWhole = false, noted = {}, afterwards, kept } = owes;
    const pending = { fields: noted };
    const subject = { kind, at, id, createdAt, outbox, pending };
    const owed = inOrder(owes.messages);
    if (owed.length === 0 && owes.waitMs) return { is: "waits", ms: owes.waitMs, said: noted };
    const end = (more: Partial<Ending>) =>
      outbox.done(id, { revision, elseInMs, kept, said: pending.fields, ...more });
    const lookAgain = () => end({ revision: undefined });
    for (const [n, one] of owed.entries()) {
      const keep = async (said: Fields) => {
        pending.fields = { ...pending.fields, ...said };
        const next = owed[n + 1];
        if (!isWhole || next === undefined || isSaid(next.mark)) return;
        // Unlike an edit, a post may take long until it is marked
        await outbox.remember(id, pending.fields);
        pending.fields = {};
      };
      const waitMs = await postOnce(subject, one, keep);
      if (waitMs > 0) return { is: "waits", ms: waitMs, said: pending.fields };
      if (waitMs < 0 || !isWhole) return lookAgain();
    }
    const ended = await end({ unless: afterwards?.where });
    if (ended.is !== "owed") return ended;
    await afterwards?.run();
    return end({ said: {} });
  }
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
