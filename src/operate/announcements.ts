import type { Config } from "../config/config.ts";
import type { Policy } from "../config/policy-file.ts";
import { type NameOf, peopleInWords } from "../core/permit/access.ts";
import type { Message } from "../messages/blocks.ts";
import { busyChannels, freezeNews, thawNews } from "../core/deliver/freeze-news.ts";
import { commandWithRole } from "../registry/command-roles.ts";
import type { Command } from "../registry/define.ts";
import type { PendingWork } from "../queue/pending-work.ts";
import type { Journal } from "../core/request/journal.ts";
import type { Announce } from "../core/deliver/notices.ts";

/**
 * Announces messages in the audit channel, and in the channels of those whom a freeze stops: where
 * people wait for something, and those of alerts and of each team. Each is announced once per ID.
 */
export function createAnnouncements(on: {
  config: Pick<Config, "policy">;
  journal: Journal;
  announce: Announce;
}) {
  const { config, journal, announce } = on;

  async function announceIn(where: "audit", id: string, message: Message): Promise<void> {
    const channelId = config.policy[where]?.channel;
    if (channelId) await announce({ id, channelId, message });
  }

  async function tellStopped(id: string, message: Message): Promise<void> {
    await announceIn("audit", id, message);
    const { alerts, audit, teams } = config.policy;
    const ofTeams = Object.values(teams).map(({ channel }) => channel);
    const all = new Set([...(await busyChannels(journal)), alerts?.channel, ...ofTeams]);
    for (const channelId of all)
      if (channelId !== undefined && channelId !== audit?.channel)
        await announce({ id: `${id}-${channelId}`, channelId, message });
  }

  return { announceIn, tellStopped };
}

/**
 * Tells people where they work that changes were frozen or are allowed again, and then has messages
 * say so. News stay on the list until both is done, in their order, so a process that dies between
 * only delays them. `changed` is called at least once for each.
 */
export function freezeNewsWork(on: {
  journal: Pick<Journal, "freezeNews">;
  commands: readonly Command[];
  config: { readonly policy: Pick<Policy, "access"> };
  /** Reads the names of people and groups. */
  namesOf(ids: readonly string[]): Promise<NameOf>;
  tellStopped: (id: string, message: Message) => Promise<void>;
  changed: () => Promise<unknown>;
}): PendingWork {
  const { pending, owed, forget } = on.journal.freezeNews;
  const ender = commandWithRole(on.commands, "ends-freeze");

  async function whoEnds(): Promise<string> {
    const { administer } = on.config.policy.access;
    return peopleInWords(administer, await on.namesOf(administer));
  }
  return {
    pending,
    async handle(all, mark) {
      for (const announcement of await owed()) {
        const { id, news } = announcement;
        const message =
          news?.is === "frozen"
            ? freezeNews(news, ender, await whoEnds())
            : news && thawNews(news.by, news.ended);
        // News that can't be read is dropped: messages still show whether changes are frozen.
        if (message) await on.tellStopped(`freeze-${id}`, message);
        await on.changed();
        await forget(announcement);
      }
      return pending.release(all, mark);
    },
  };
}
