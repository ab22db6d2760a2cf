import { randomUUID } from "node:crypto";
import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { type Message, sentence } from "../messages/message.ts";
import { channelLink, md } from "../messages/text.ts";
import type { Digests } from "./create-digests.ts";
import type { Digest } from "./render-digest.ts";
import { latestSlot, localWords, type Slot } from "./slots.ts";

/** What was due longer ago is not told any more: the next one says it all. */
const mostLateMs = 24 * 3600_000;
const mostRemembered = 1000;

export interface PostDueOptions {
  digests: Pick<Digests, "schedules" | "slots" | "build">;
  /** Written down when it resolves, posted once per id. */
  announce(notice: { id: string; channelId: string } & Digest): Promise<unknown>;
  /** Tells the alerts channel, once per id. */
  alarm(id: string, message: Message): Promise<void>;
  /** Reached while a digest is being made; tests of crashes end the process there. */
  at?(point: "digest", slotId: string): Promise<void>;
  now(): number;
  log: Log;
}

/**
 * Posts what is due now; called again and again, by every process. A slot missed while nobody was there is found as the
 * newest one that is due, so it comes late, once; of several missed ones only the newest.
 */
export function createPostDue(options: PostDueOptions): () => Promise<void> {
  const { digests, now, log } = options;
  const { schedules, slots } = digests;
  const owner = randomUUID();
  /** Slots that need no further look from this process. */
  const over = new Set<string>();

  async function post(slot: Slot): Promise<void> {
    const begun = await slots.begin(slot.id, owner);
    if (begun.is === "busy") return;
    if (begun.is === "exhausted") await giveUp(slot);
    if (begun.is === "yours") {
      const { rule, id } = slot;
      const readUntil = now();
      const digest = await digests.build(rule.channel, slot);
      await options.at?.("digest", id);
      await options.announce({ id, channelId: rule.channel, ...digest });
      await slots.told(rule.channel, readUntil);
      await slots.end(id, "posted");
      log.info("digest.posted", { slot: id, lateMs: Math.max(0, readUntil - slot.at) });
    }
    if (over.size >= mostRemembered) over.clear();
    over.add(slot.id);
  }

  async function giveUp({ id, rule, at }: Slot): Promise<void> {
    const due = localWords(at, rule.timezone);
    log.error("digest.failed", { slot: id });
    const text = md`⚠️ The digest for ${channelLink(rule.channel)}, due ${due}, could not be made: it was begun three times, and never came to its end. The log tells more. The next one will be tried again.`;
    await options.alarm(`${id}-failed`, sentence(text));
    await slots.end(id, "failed");
  }

  return async () => {
    for (const rule of await schedules.all()) {
      const slot = latestSlot(rule, now());
      if (!slot || over.has(slot.id)) continue;
      try {
        // Asked of old slots too: a weekly schedule must be known before its first one
        const isOurs = await schedules.isOurs(slot, now());
        if (isOurs && now() - slot.at <= mostLateMs) await post(slot);
      } catch (error) {
        // One that can't be made must not keep the others away; it is tried again, three times in all
        log.warn("digest.later", { slot: slot.id, why: messageOf(error) });
        await slots.letGo(slot.id, owner).catch(() => undefined);
      }
    }
  };
}
