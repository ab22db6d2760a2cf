import type { Config } from "../config/config.ts";
import type { KnownVm } from "../fleet/inventory/inventory.ts";
import type { Message } from "../messages/message.ts";
import { alertChannel, policyPlaceOf } from "../core/permit/access.ts";

export type Alarms = ReturnType<typeof createAlarms>;

/** Where what nobody asked for is told: to the team that has it, else to `alerts`. */
export function createAlarms(options: {
  /** Its policy is read at each use: it may be another one by then. */
  config: Pick<Config, "policy">;
  announce(notice: { id: string; channelId: string; message: Message }): Promise<unknown>;
}) {
  const { config, announce } = options;
  return {
    /** Whose a VM is: what is told together is of one place. */
    placeOf: ({ projectId, projectName }: Pick<KnownVm, "projectId" | "projectName">): string =>
      policyPlaceOf(config.policy, { id: projectId, name: projectName }),
    /** Once per ID; returns the channel, where there is one for it. */
    async tell(id: string, said: Message, place: string): Promise<string | undefined> {
      const channelId = alertChannel(config.policy, place);
      if (channelId !== undefined) await announce({ id, channelId, message: said });
      return channelId;
    },
  };
}
