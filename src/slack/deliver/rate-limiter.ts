import { type Keys, defineScript, type RedisClient, redisTimeLua } from "../../redis/redis.ts";

/**
 * Slack's rate limits, shared by all processes: about one message a second per channel, and 50 edits a minute for the
 * workspace (https://docs.slack.dev/apis/web-api/rate-limits).
 */
export interface RateLimiter {
  /** 0 when a message may be posted in that channel now, else how long to wait (ms). */
  post(channelId: string): Promise<number>;
  /** The same for an edit. Edits that are not the last of their message leave room for those that are. */
  edit(isLast: boolean): Promise<number>;
  /** Slack said to wait. */
  pause(what: { post: string } | "edit", forMs: number): Promise<void>;
}

/**
 * One leaky bucket: a theoretical arrival time per key (GCRA).
 * KEYS bucket   ARGV interval (ms), burst, reserve → 0, or how long to wait (ms)
 */
const take = `${redisTimeLua}
local interval = tonumber(ARGV[1])
local due = tonumber(redis.call('GET', KEYS[1]) or now)
if due < now then due = now end
local room = interval * (tonumber(ARGV[2]) - tonumber(ARGV[3]))
local wait = due + interval - room - now
if wait > 0 then return math.ceil(wait) end
redis.call('SET', KEYS[1], due + interval, 'PX', math.ceil(due + interval - now) + 1000)
return 0
`;

/** KEYS bucket   ARGV wait (ms), interval, burst */
const pause = `${redisTimeLua}
local due = now + tonumber(ARGV[1]) + tonumber(ARGV[2]) * (tonumber(ARGV[3]) - 1)
redis.call('SET', KEYS[1], due, 'PX', math.ceil(due - now) + 1000)
return 1
`;

/** Intervals in ms; `reserve` of the burst is for last edits only. */
export interface SlackLimits {
  posts: { interval: number; burst: number };
  edits: { interval: number; burst: number; reserve: number };
}

const slackLimits: SlackLimits = {
  posts: { interval: 1000, burst: 4 },
  edits: { interval: 60_000 / 50, burst: 20, reserve: 8 },
};

export function createRateLimiter(
  redis: RedisClient,
  key: Keys,
  { posts, edits }: SlackLimits = slackLimits,
): RateLimiter {
  const runTake = defineScript(redis, "gatehousePaceTake", take);
  const runPause = defineScript(redis, "gatehousePacePause", pause);
  return {
    post: async (channelId) =>
      Number(await runTake([key("pace", "post", channelId)], [posts.interval, posts.burst, 0])),
    edit: async (isLast) =>
      Number(
        await runTake(
          [key("pace", "edit")],
          [edits.interval, edits.burst, isLast ? 0 : edits.reserve],
        ),
      ),
    async pause(what, forMs) {
      if (what === "edit")
        await runPause([key("pace", "edit")], [forMs, edits.interval, edits.burst]);
      else await runPause([key("pace", "post", what.post)], [forMs, posts.interval, posts.burst]);
    },
  };
}
