import type { Config } from "../config/config.ts";
import type { Message } from "../messages/message.ts";
import { busyChannels, freezeNews } from "../core/deliver/after-result.ts";
import { type Command, freezeEnder } from "../registry/define.ts";
import type { Journal } from "../core/request/journal.ts";
import type { Announce } from "../core/deliver/deliver.ts";

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
 * A journal that announces freezes where people wait. `changed` is called when a freeze begins or
 * ends.
 */
export function withFreezesAnnounced(
  journal: Journal,
  {
    commands,
    tellBusy,
    changed,
  }: {
    commands: readonly Command[];
    tellBusy: (id: string, message: Message) => Promise<void>;
    changed: () => Promise<unknown>;
  },
): Journal {
  return {
    ...journal,
    async freeze(freeze) {
      const isNew = await journal.freeze(freeze);
      if (isNew)
        await tellBusy(`freeze-${await journal.now()}`, freezeNews(freeze, freezeEnder(commands)));
      if (isNew) await changed();
      return isNew;
    },
    async thaw(by) {
      const isThawed = await journal.thaw(by);
      if (isThawed) await changed();
      return isThawed;
    },
  };
}
