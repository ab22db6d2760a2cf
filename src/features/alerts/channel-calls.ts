import { deadlineMs } from "../../deadline.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";

/** Groups that begin to fire within this time of a call are part of what it calls for (ms). */
const togetherMs = 5_000;
/** How long others leave a call to the group that is about to make it (ms). */
const claimMs = 10_000;
/** How long a call is remembered: cards wait for their turns in the channel (ms). */
const rememberedMs = 10 * 60_000;

/** What a group of alerts, or a message for many, may call a person or a user group for. */
interface Wish {
  channelId: string;
  who: string;
  /** How severe it is (`severityRank`). */
  rank: number;
  /** When it began to fire, or got more severe (ms by Redis). */
  urgentAt: number;
}

/**
 * Lets groups that fire together in one channel call each person once. The first one claims the
 * call. The others wait until it is made, so that nobody stays uncalled if it never is.
 */
export function createChannelCalls(redis: RedisClient, key: Keys) {
  const keyOf = (
    stage: "calling" | "called",
    { channelId, who }: Pick<Wish, "channelId" | "who">,
  ) => key("alerts", stage, channelId, who);
  const parse = (stored: string | null) => {
    const [rank, groupId = "", at] = (stored ?? "").split(" ");
    return stored === null ? undefined : { rank: Number(rank), groupId, at: Number(at) };
  };

  return {
    /**
     * Decides who makes this call: `mine`, `made` if another group's call is enough, or `waiting`
     * while another group is about to make it. `own` are the IDs of the groups that ask.
     */
    async claim(wish: Wish, own: readonly string[]): Promise<"mine" | "made" | "waiting"> {
      const [id = ""] = own;
      const { rank, urgentAt } = wish;
      const called = parse(await redis.get(keyOf("called", wish)));
      const isTogether = called && urgentAt - called.at <= deadlineMs(togetherMs);
      // A group that fires again calls anew, however soon.
      if (isTogether && called.rank >= rank && !own.includes(called.groupId)) return "made";
      const [calling, value] = [keyOf("calling", wish), `${rank} ${id}`];
      if (await redis.set(calling, value, "PX", deadlineMs(claimMs), "NX")) return "mine";
      const claim = parse(await redis.get(calling));
      if (claim && claim.rank >= rank && !own.includes(claim.groupId)) return "waiting";
      await redis.set(calling, value, "PX", deadlineMs(claimMs));
      return "mine";
    },

    /** Notes that this group has called the person. */
    async note(wish: Omit<Wish, "urgentAt">, id: string, now: number): Promise<void> {
      const value = `${wish.rank} ${id} ${now}`;
      await redis.set(keyOf("called", wish), value, "PX", rememberedMs);
      await redis.del(keyOf("calling", wish));
    },
  };
}

export type ChannelCalls = ReturnType<typeof createChannelCalls>;
