import { messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import { type Message, notice } from "../messages/message.ts";
import { channelLink, md } from "../messages/text.ts";
import type { Digests } from "./create-digests.ts";
import { latestSlot, localWords, seriesOf, type Slot } from "./slots.ts";

/** Older slots are not posted: the next one covers them. */
const mostLateMs = 24 * 3600_000;
const maxRemembered = 1000;

interface PostDueOptions {
  digests: Pick<Digests, "schedules" | "slots" | "build">;
  /** Stored when it resolves, posted once per ID. */
  announce(notice: { id: string; channelId: string; message: Message }): Promise<unknown>;
  /** Tells of the digest of a channel, once per ID. */
  alarm(channelId: string, id: string, message: Message): Promise<void>;
  /** Failpoint for crash tests, while a digest is built. */
  at?(point: "digest", slotId: string): Promise<void>;
  now(): number;
  log: Log;
}

/**
 * Posts what is due now; called repeatedly, by every process. Of missed slots only the newest is posted, once, late.
 */
export function createPostDue(options: PostDueOptions): () => Promise<void> {
  const { digests, now, log } = options;
  const { schedules, slots } = digests;
  /** Slots that this process has finished with. */
  const over = new Set<string>();

  async function post(slot: Slot): Promise<void> {
    const { id, rule, at } = slot;
    const begun = await slots.begin(id);
    if (begun === "busy") return;
    if (begun === "exhausted") await giveUp(slot);
    if (begun === "yours") {
      const readUntil = now();
      const message = await digests.build(rule.channel, { slot });
      await options.at?.("digest", id);
      await options.announce({ id, channelId: rule.channel, message });
      await slots.told(seriesOf(rule), readUntil);
      await slots.end(id, "posted");
      log.info("digest.posted", { slot: id, lateMs: Math.max(0, readUntil - at) });
    }
    if (over.size >= maxRemembered) over.clear();
    over.add(id);
  }

  async function giveUp({ id, rule, at }: Slot): Promise<void> {
    const due = localWords(at, rule.timezone);
    log.error("digest.failed", { slot: id });
    const text = md`⚠️ The digest for ${channelLink(rule.channel)}, due ${due}, could not be made: three attempts failed. See the log. The next digest is due as usual.`;
    await options.alarm(rule.channel, `${id}-failed`, notice(text));
    await slots.end(id, "failed");
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
