import type { Policy } from "../config/policy-file.ts";
import type { KnownVm } from "../inventory/inventory.ts";
import type { Message } from "../messages/message.ts";
import { alertChannel, placeOf } from "../policy/scope.ts";

/** Where what nobody asked for is told: to the team that has it, else to `alerts`. */
export interface Alarms {
  /** Whose a VM is: what is told together is of one place. */
  placeOf(vm: KnownVm): string;
  /** Once per ID; returns the channel, where there is one for it. */
  tell(id: string, message: Message, place: string): Promise<string | undefined>;
  /** About the messages of a channel: to its own team, else to `alerts`. */
  tellOf(channelId: string, id: string, message: Message): Promise<void>;
}

export function createAlarms(options: {
  /** Read at each use: it may be another one by then. */
  readonly policy: Policy;
  announce(notice: { id: string; channelId: string; message: Message }): Promise<unknown>;
}): Alarms {
  const announce = async (id: string, message: Message, channelId: string | undefined) => {
    if (channelId !== undefined) await options.announce({ id, channelId, message });
    return channelId;
  };
  return {
    placeOf: ({ projectId, projectName }) =>
      placeOf(options.policy, { id: projectId, name: projectName }),
    tell: (id, message, place) => announce(id, message, alertChannel(options.policy, place)),
    async tellOf(channelId, id, message) {
      const { policy } = options;
      const isTeams = Object.values(policy.teams).some(({ channel }) => channel === channelId);
      await announce(id, message, isTeams ? channelId : policy.alerts?.channel);
    },
  };
}
