import type { PolicyChange } from "../config/policy-changes.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import { parseJson } from "../text/parse-json.ts";

/** A change of the policy that the audit channel is to be told. */
export interface PolicyNews {
  after: string;
  /** Undefined where the process didn't know the policy before. */
  changes: readonly PolicyChange[] | undefined;
  channels: readonly string[];
  /** Requests that it cancels: the first of them, and how many there are. */
  canceled: readonly string[];
  canceledCount: number;
}

/**
 * It is owed from the moment it counts, in Redis, until it is in Slack's outbox: the process that owes it may die in between,
 * and then another one tells it.
 */
export interface OwedPolicyNews extends PolicyNews {
  id: string;
  before: string;
  /** Redis time (ms). */
  at: number;
}

export const owedNewsKey = (key: Keys) => key("policy", "untold");

/** Within a script: notes what is owed. Needs `now`. */
export const oweNewsLua = (owed: string, id: string, before: string, news: string) => `
redis.call('HSET', ${owed}, ${id}, cjson.encode({
  at = string.format('%d', now), before = ${before}, news = ${news} }))
`;

export async function readOwedNews(
  redis: RedisClient,
  key: Keys,
): Promise<readonly OwedPolicyNews[]> {
  const owed = Object.entries(await redis.hgetall(owedNewsKey(key))).map(([id, text]) => {
    const { at, before, news } = parseJson(text) as { at: string; before: string; news: string };
    return { ...(parseJson(news) as PolicyNews), id, before, at: Number(at) };
  });
  return owed.toSorted((a, b) => a.at - b.at);
}

/** Slack's outbox has it. */
export async function settleNews(redis: RedisClient, key: Keys, id: string): Promise<void> {
  await redis.hdel(owedNewsKey(key), id);
}
