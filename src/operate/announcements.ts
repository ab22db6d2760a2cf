import type { Config } from "../config/config.ts";
import type { Message } from "../messages/blocks.ts";
import { busyChannels, freezeNews, thawNews } from "../core/deliver/freeze-news.ts";
import { type Command, freezeEnder } from "../registry/define.ts";
import type { PendingWork } from "../queue/pending-work.ts";
import type { Journal } from "../core/request/journal.ts";
import type { Announce } from "../core/deliver/notices.ts";

/**
 * Announces messages in the audit channel, and in channels where people wait for something, each
 * once per ID.
 */
export function createAnnouncements(on: {
  config: Pick<Config, "policy">;
  journal: Journal;
  announce: Announce;
}) {
  const { config, journal, announce } = on;

  async function tell(where: "audit", id: string, message: Message): Promise<void> {
    const channelId = config.policy[where]?.channel;
    if (channelId) await announce({ id, channelId, message });
  }

  async function tellBusy(id: string, message: Message): Promise<void> {
    await tell("audit", id, message);
    for (const channelId of await busyChannels(journal))
      if (channelId !== config.policy.audit?.channel)
        await announce({ id: `${id}-${channelId}`, channelId, message });
  }

  return { tell, tellBusy };
}

/**
 * Tells people where they wait that changes were frozen or are allowed again, and then has messages
 * say so. News stay on the list until both is done, in their order, so a process that dies between
 * only delays them. `changed` is called at least once for each.
 */
export function freezeNewsWork(on: {
  journal: Pick<Journal, "freezeNews">;
  commands: readonly Command[];
  tellBusy: (id: string, message: Message) => Promise<void>;
  changed: () => Promise<unknown>;
}): PendingWork {
  const { pending, owed, forget } = on.journal.freezeNews;
  const ender = freezeEnder(on.commands);
  return {
    pending,
    async handle(all, mark) {
      for (const one of await owed()) {
        const { id, news } = one;
        const message =
          news.is === "frozen" ? freezeNews(news, ender) : thawNews(news.by, news.ended);
        await on.tellBusy(`freeze-${id}`, message);
        await on.changed();
        await forget(one);
      }
      await pending.release(all, mark);
    },
  };
}
