import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { type Message, channelLink, md, notice } from "../../messages/message.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import type { Digests } from "./create-digests.ts";
import { type Slot, latestSlot, localWords } from "./schedules.ts";

/** Older slots are not posted: the next one covers them. */
const mostLateMs = 24 * 3600_000;
const keptMs = 7 * 24 * 3600_000;
const maxStarts = 3;

interface PostDueOptions {
  redis: RedisClient;
  key: Keys;
  digests: Pick<Digests, "schedules" | "build" | "told">;
  /** Stored when it resolves, posted once per ID. */
  announce(notice: { id: string; channelId: string; message: Message }): Promise<unknown>;
  /** Tells of the digest of a channel, once per ID. */
  alarm(channelId: string, id: string, message: Message): Promise<unknown>;
  /** Failpoint for crash tests, while a digest is built. */
  at?: ((point: "digest", slotId: string) => Promise<void>) | undefined;
  /** Lease of a slot while its digest is built (ms): longer than that takes, short enough to retry soon after a process dies. */
  leaseMs: number;
  log: Log;
  now(): number;
}

/**
 * Posts what is due now; called at the time of each digest, by whichever worker has its job. Of missed slots only the newest is posted, once, late. A slot
 * isn't begun twice at once, nor more than three times in all: building it may crash processes. Its notice, not this, makes
 * it posted once.
 */
export function createPostDue(options: PostDueOptions): () => Promise<void> {
  const { redis, key, digests, now, log, leaseMs } = options;
  const { schedules } = digests;

  /** A few a day: slots that this process knows to be over. */
  const over = new Set<string>();

  async function post(slot: Slot): Promise<void> {
    const { id, rule, at } = slot;
    const named = key("digest-slot", id);
    if ((await redis.hexists(named, "ended")) === 1) return void over.add(id);
    // Another process builds it, or has died or failed in it just now
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
      await digests.told(rule, readUntil);
      log.info("digest.posted", { slot: id, lateMs: Math.max(0, readUntil - at) });
    }
    await redis.hset(named, "ended", starts > maxStarts ? "failed" : "posted");
    over.add(id);
  }

  async function giveUp({ id, rule, at }: Slot): Promise<void> {
    const due = localWords(at, rule.timezone);
    log.error("digest.failed", { slot: id });
    const text = md`⚠️ The digest for ${channelLink(rule.channel)}, due ${due}, could not be made: three attempts failed. See the log. The next digest is due as usual.`;
    await options.alarm(rule.channel, `${id}-failed`, notice(text));
  }

  return async () => {
    for (const rule of await schedules.all()) {
      const slot = latestSlot(rule, now());
      if (!slot || over.has(slot.id)) continue;
      try {
        // Checked for old slots too: a weekly schedule must be known before its first one
        const isOurs = await schedules.isOurs(slot, now());
        if (isOurs && now() - slot.at <= mostLateMs) await post(slot);
      } catch (error) {
        // Must not hold up the others; it is tried again when its lease has ended, three times in all
        log.warn("digest.later", { slot: slot.id, why: messageOf(error) });
      }
    }
  };
}
