import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { type Message } from "../../messages/blocks.ts";
import { sentence } from "../../messages/card.ts";
import { channelLink, md } from "../../messages/markdown.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import type { Digests } from "./create-digests.ts";
import { momentWords } from "../../text/time-words.ts";
import { type Slot, latestSlot } from "./schedules.ts";

/** Slots older than this aren't posted, because the next one covers them. */
const mostLateMs = 24 * 3600_000;
const keptMs = 7 * 24 * 3600_000;
const maxStarts = 3;

interface PostDueOptions {
  redis: RedisClient;
  key: Keys;
  digests: Pick<Digests, "schedules" | "build" | "noteReported">;
  /** Stored when it resolves, posted once per ID. */
  announce(notice: { id: string; channelId: string; message: Message }): Promise<unknown>;
  /** Posts an alarm about a channel's digest, once per ID. */
  alarm(channelId: string, id: string, message: Message): Promise<unknown>;
  /** Failpoint for crash tests, while a digest is built. */
  at?: ((point: "digest", slotId: string) => Promise<void>) | undefined;
  /**
   * Lease of a slot while its digest is built (ms): longer than that takes, but short enough to
   * retry soon after a process dies.
   */
  leaseMs: number;
  log: Log;
  now(): number;
}

/**
 * Creates the job that posts due digests; the worker that has a digest's job runs it. Of missed
 * slots only the newest is posted, once, late. A slot is never built twice at a time, and at most
 * three times in all, because building it may crash processes. A process builds one at a time, so
 * that the digest that ends it is told from the others that are due. The notice's ID makes sure that
 * it is posted once.
 */
export function createPostDue(options: PostDueOptions): () => Promise<void> {
  const { redis, key, digests, now, log, leaseMs } = options;
  const { schedules } = digests;

  /** Slots that this process knows to be over; a few are added each day. */
  const over = new Set<string>();

  async function post(slot: Slot): Promise<void> {
    const { id, rule, at } = slot;
    const named = key("digest-slot", id);
    if ((await redis.hexists(named, "ended")) === 1) return void over.add(id);
    // Another process is building it, or failed or died in it just now.
    if ((await redis.set(key("digest-slot", id, "lease"), "held", "PX", leaseMs, "NX")) === null)
      return;
    const starts = await redis.hincrby(named, "starts", 1);
    await redis.pexpire(named, keptMs);
    if (starts > maxStarts) await giveUp(slot);
    else {
      const readUntil = now();
      const message = await digests.build(rule.channel, { slot });
      await options.at?.("digest", id);
      await options.announce({ id, channelId: rule.channel, message });
      await digests.noteReported(rule, readUntil);
      log.info("digest.posted", { slot: id, lateMs: Math.max(0, readUntil - at) });
    }
    await redis.hset(named, "ended", starts > maxStarts ? "failed" : "posted");
    over.add(id);
  }

  async function giveUp({ id, rule, at }: Slot): Promise<void> {
    const due = momentWords(at, rule.timezone);
    log.error("digest.failed", { slot: id });
    const text = md`⚠️ The digest for ${channelLink(rule.channel)}, due ${due}, could not be made: three attempts failed. See the log. The next digest is due as usual.`;
    await options.alarm(rule.channel, `${id}-failed`, sentence(text));
  }

  async function postAll(): Promise<void> {
    for (const rule of await schedules.all()) {
      const slot = latestSlot(rule, now());
      if (!slot || over.has(slot.id)) continue;
      try {
        // Ask this for old slots too: it records when a schedule was first seen, which must be
        // before its first slot.
        const isOurs = await schedules.isOurs(slot, now());
        if (isOurs && now() - slot.at <= mostLateMs) await post(slot);
      } catch (error) {
        // One failure must not delay the other digests. This one is tried again after its lease,
        // three times in all.
        log.warn("digest.later", { slot: slot.id, why: messageOf(error) });
      }
    }
  }

  /** The newest run of the job in this process. The next one begins when it has ended. */
  let newest: Promise<void> = Promise.resolve();

  return () => {
    newest = newest.catch(() => undefined).then(postAll);
    return newest;
  };
}
