import { randomUUID } from "node:crypto";
import type { Message } from "../../messages/message.ts";
import { createOutbox } from "../../redis/due-list.ts";
import {
  redisTimeLua,
  type Fields,
  type Keys,
  defineScript,
  type RedisClient,
} from "../../redis/redis.ts";
import type { Owes, Source } from "./deliver.ts";

interface Keyed {
  /** The same line has the same key, in any process. */
  key: string;
}

export interface Feeds<Line> {
  /** Stored when it resolves. What the channel was notified about before is left out. */
  post(channelId: string, lines: readonly (Line & Keyed)[]): Promise<void>;
  source: Source;
}

const keptMs = 7 * 24 * 3600_000;
/** In one script: few enough that Redis doesn't stand still. */
const linesAtOnce = 200;

/**
 * KEYS told, open, feeds   ARGV channel, new ID, prefix of feeds, kept for (ms), then of each line its key and itself
 * → how many were new
 */
const join = `${redisTimeLua}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[4])
local new = 0
for n = 5, #ARGV, 2 do
  if redis.call('ZADD', KEYS[1], 'NX', now, ARGV[n]) == 1 then
    local id = redis.call('GET', KEYS[2])
    if not id or redis.call('HGET', ARGV[3] .. id, 'sealed') or redis.call('EXISTS', ARGV[3] .. id) == 0 then
      id = ARGV[2]
      redis.call('SET', KEYS[2], id, 'PX', ARGV[4])
      redis.call('HSET', ARGV[3] .. id, 'channel', ARGV[1], 'at', now)
      redis.call('PEXPIRE', ARGV[3] .. id, ARGV[4])
      redis.call('ZADD', KEYS[3], now, id)
    end
    local count = redis.call('HINCRBY', ARGV[3] .. id, 'count', 1)
    redis.call('HSET', ARGV[3] .. id, 'line:' .. count, ARGV[n + 1])
    new = new + 1
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return new
`;

/**
 * Lines that a channel is subscribed to. Each is told once, whoever brings it and however often. While the message that lines
 * came into can't be posted yet, because the channel takes about one a second, further lines join it.
 *
 *     open: lines join ──► sealed: it is about to be posted, and stays as it is ──► posted
 */
export function createFeeds<Line extends object>(options: {
  redis: RedisClient;
  key: Keys;
  render(lines: readonly Line[]): Message;
  visibilityTimeoutMs: number;
  at?(point: "posting" | "posted", what: "feed"): Promise<void>;
}): Feeds<Line> {
  const { redis, key, render, visibilityTimeoutMs } = options;
  const feedKey = (id: string) => key("feed", id);
  const outbox = createOutbox(redis, key("feeds"), feedKey);
  const runJoin = defineScript(redis, "gatehouseJoinFeed", join);

  async function read(id: string, fields: Fields): Promise<Owes | undefined> {
    const { channel: channelId, at, "said:feed": mark } = fields;
    if (!channelId) return undefined;
    return {
      createdAt: Number(at),
      revision: 0,
      messages: [
        {
          key: "feed",
          mark,
          place: { channelId },
          // After the wait for the channel, right before the post
          growsUntilMarked: true,
          async render() {
            await redis.hset(feedKey(id), "sealed", "1");
            const feed = await outbox.get(id);
            const count = Number(feed["count"] ?? 0);
            const lines = Array.from({ length: count }, (_, n) => feed[`line:${n + 1}`] ?? "{}");
            return render(lines.map((line) => JSON.parse(line) as Line));
          },
          urgency: "card",
        },
      ],
    };
  }

  return {
    async post(channelId, lines) {
      const keys = [key("feed-told", channelId), key("feed-open", channelId), outbox.list];
      for (let from = 0; from < lines.length; from += linesAtOnce) {
        const some = lines.slice(from, from + linesAtOnce);
        const args = some.flatMap(({ key: one, ...line }) => [one, JSON.stringify(line)]);
        await runJoin(keys, [channelId, randomUUID(), feedKey(""), keptMs, ...args]);
      }
      outbox.ring();
    },
    source: {
      kind: "feed",
      outbox,
      atOnce: 4,
      visibilityTimeoutMs,
      read,
      at: async (point) => options.at?.(point, "feed"),
    },
  };
}
