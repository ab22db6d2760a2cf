import { defineScript, type Keys, type RedisClient } from "../redis.ts";

/**
 * Slack's rate limits, kept by all processes together: about one message a second per channel, and 50 edits a minute
 * for the whole workspace (https://docs.slack.dev/apis/web-api/rate-limits). What is refused here waits; nothing is lost.
 */
export interface Pace {
  /** 0 when a message may be posted in that channel now, else how long to wait (ms). */
  post(channelId: string): Promise<number>;
  /** The same for an edit. Edits that are not the last of their request leave room for those that are. */
  edit(isLast: boolean): Promise<number>;
  /** Slack itself said to wait. */
  pause(what: { post: string } | "edit", forMs: number): Promise<void>;
}

/**
 * One leaky bucket: a theoretical arrival time per key (GCRA).
 * KEYS bucket   ARGV interval (ms), burst, reserve → 0, or how long to wait (ms)
 */
const take = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local interval = tonumber(ARGV[1])
local due = tonumber(redis.call('GET', KEYS[1]) or now)
if due < now then due = now end
local room = interval * (tonumber(ARGV[2]) - tonumber(ARGV[3]))
local wait = due + interval - room - now
if wait > 0 then return math.ceil(wait) end
redis.call('SET', KEYS[1], due + interval, 'PX', math.ceil(due + interval - now) + 1000)
return 0
`;

/** KEYS bucket   ARGV for how long nothing may pass (ms), interval, burst */
const pause = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local due = now + tonumber(ARGV[1]) + tonumber(ARGV[2]) * (tonumber(ARGV[3]) - 1)
redis.call('SET', KEYS[1], due, 'PX', math.ceil(due - now) + 1000)
return 1
`;

/** Times between two calls in milliseconds, and how many may come at once; `reserve` of them only for last edits. */
export interface PaceLimits {
  posts: { interval: number; burst: number };
  edits: { interval: number; burst: number; reserve: number };
}

const slackLimits: PaceLimits = {
  posts: { interval: 1000, burst: 4 },
  edits: { interval: 60_000 / 50, burst: 20, reserve: 8 },
};

export function createPace(
  redis: RedisClient,
  key: Keys,
  { posts, edits }: PaceLimits = slackLimits,
): Pace {
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
