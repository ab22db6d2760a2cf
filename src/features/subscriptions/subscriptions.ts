import * as z from "zod";
import type { Config } from "../../config/config.ts";
import { type Topic, topics } from "../../core/events/event.ts";
import type { Follow, Followed, NewsLine } from "../../monitor/news.ts";
import { scopeOfChannel, seesUnder } from "../../core/permit/access.ts";
import { compileTargetGlobs, ownerOf } from "../../core/permit/refusal.ts";
import { defineRecord, objectOf } from "../../redis/define-record.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import { defineService } from "../../registry/service-key.ts";

export interface Subscription {
  channelId: string;
  /** A name or a glob in the syntax of `compileTargetGlobs`. */
  glob: string;
  /** The topics that the channel is told about. */
  events: readonly Topic[];
  /** ID of the person who subscribed the channel. */
  by: string;
  at: number;
}

export const subscriptionRecord = defineRecord({
  name: "subscription",
  schema: objectOf<Subscription>({
    channelId: z.string(),
    glob: z.string(),
    events: z.array(z.enum(topics)),
    by: z.string(),
    at: z.number(),
  }),
});

export type Subscriptions = ReturnType<typeof createSubscriptions>;

/** The service that the commands of subscriptions answer from. */
export const subscriptionsOf = defineService<Subscriptions>("subscriptions");

/**
 * Stores subscriptions in one hash, a field for each channel and glob, so that two people who
 * subscribe at the same time don't overwrite each other.
 */
export function createSubscriptions(options: {
  redis: RedisClient;
  key: Keys;
  config: Pick<Config, "policy">;
  /** Begins to follow the trail, before the first channel is subscribed. */
  begin(): Promise<unknown>;
  /** Posts lines in a channel, each once by its key. */
  post(channelId: string, lines: readonly (NewsLine & { key: string })[]): Promise<void>;
}) {
  const { redis, key } = options;
  const named = key("subscriptions");
  const fieldOf = ({ channelId, glob }: Pick<Subscription, "channelId" | "glob">) =>
    `${channelId} ${glob}`;

  async function all(): Promise<Subscription[]> {
    const subscriptions = subscriptionRecord.parseAll(await redis.hgetall(named), named);
    return subscriptions.toSorted((a, b) => a.at - b.at);
  }

  const follow: Follow = async (happened) => {
    if (happened.length === 0) return;
    const subscriptions = await all();
    for (const [channelId, own] of Map.groupBy(
      subscriptions,
      (subscription) => subscription.channelId,
    )) {
      const scope = scopeOfChannel(options.config.policy, channelId);
      const mayTell = (target: Followed) => {
        const { id, name } = ownerOf(target);
        return seesUnder(scope, id, [name, target.projectNameNow]);
      };
      const lines: (NewsLine & { key: string })[] = [];
      for (const { topic, key: id, about, line, saidIn = [] } of happened) {
        const wanted = own.filter((subscription) => subscription.events.includes(topic));
        if (wanted.length === 0 || saidIn.includes(channelId)) continue;
        const isMeant = compileTargetGlobs(wanted.map(({ glob }) => glob));
        const meant = about.filter((target) => isMeant(target) && mayTell(target));
        if (meant.length > 0) lines.push({ ...(await line(meant)), key: `${topic} ${id}` });
      }
      if (lines.length > 0) await options.post(channelId, lines);
    }
  };

  return {
    /** Key in Redis, which exists while any channel is subscribed. */
    named,
    follow,
    all,
    of: async (channelId: string) =>
      (await all()).filter((subscription) => subscription.channelId === channelId),
    /** Replaces the channel's subscription to this glob. */
    async set(subscription: Subscription): Promise<void> {
      await options.begin();
      await redis.hset(named, fieldOf(subscription), subscriptionRecord.write(subscription));
    },
    async remove(subscription: Pick<Subscription, "channelId" | "glob">): Promise<void> {
      await redis.hdel(named, fieldOf(subscription));
    },
  };
}
