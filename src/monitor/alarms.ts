import type { Config } from "../config/config.ts";
import type { KnownVm } from "../fleet/inventory/inventory.ts";
import type { Message } from "../messages/blocks.ts";
import { alertChannel, policyPlaceOf } from "../core/permit/access.ts";

export type Alarms = ReturnType<typeof createAlarms>;

/**
 * Sends alarms about things that nobody requested to the channel of the team that owns them, or
 * else to `alerts`.
 */
export function createAlarms(options: {
  /** The policy is read at each use, because it may have changed. */
  config: Pick<Config, "policy">;
  announce(
    notice: { id: string; channelId: string; message: Message },
    timing?: { inMs?: number },
  ): Promise<unknown>;
}) {
  const { config, announce } = options;
  return {
    /** The owner of a VM. Alarms that are sent together are about one owner. */
    placeOf: ({ projectId, projectName }: Pick<KnownVm, "projectId" | "projectName">): string =>
      policyPlaceOf(config.policy, { id: projectId, name: projectName }),
    /**
     * Sends an alarm, once per ID and not before `inMs` are over. Resolves with the channel, if there
     * is one for it.
     */
    async sendAlarm(
      id: string,
      message: Message,
      place: string,
      { inMs = 0 } = {},
    ): Promise<string | undefined> {
      const channelId = alertChannel(config.policy, place);
      if (channelId !== undefined) await announce({ id, channelId, message }, { inMs });
      return channelId;
    },
  };
}
