import {
  type Keys,
  type RedisClient,
  defineScript,
  redisNow,
  redisTimeLua,
  setBackMs,
} from "../../redis/redis.ts";

export type RateLimiter = ReturnType<typeof createRateLimiter>;

/** What goes first when Slack takes less than is due: what a person must decide, then results, then cards of what still runs, then the rest. */
export const urgencies = ["decision", "result", "card", "rest"] as const;
export type Urgency = (typeof urgencies)[number];

export interface Turn {
  /** Names the message while it waits. */
  id: string;
  urgency?: Urgency | undefined;
  /** It does not wait in line: where it can't go now, it joins others. */
  isJoining?: boolean | undefined;
  mark: Mark;
}

/** What is marked in the same step as the turn is taken: a field that must still be as it was read ("" for none). */
export interface Mark {
  /** Key of its hash. */
  hash: string;
  field: string;
  before: string;
  /** It becomes `<doing> <Redis time (ms)>`. */
  doing: string;
}

/** A turn that is taken has the time of its mark; without one, and nothing to wait for, the mark is another's by now. */
export interface Taken {
  /** How long until its turn (ms). */
  waitMs: number;
  /** Redis time (ms). */
  at?: number | undefined;
}

/** One that did not come so long after its turn is struck off the line (ms). */
const missedMs = 5000;
/** Turns that are further off are told later: those who went before may have left (ms). */
const longestMs = 10_000;

/**
 * One leaky bucket (GCRA: a theoretical arrival time) and the line of those who wait for it, the most urgent first. Each
 * is told when its turn comes, so a long line costs no more calls than a short one. Turn and mark are one step: whose mark is
 * another's by now uses up no turn.
 *
 * The bucket is `<theoretical arrival time> <when that was stored>`.
 *
 * KEYS bucket, line, times, marked hash
 * ARGV interval (ms), burst, reserve, urgency (0 first), id, joins (0|1), field, its value ('' for none), what is begun
 * → how long to wait (ms), the time of the mark or 0
 */
const take = `${redisTimeLua}
local interval, id = tonumber(ARGV[1]), ARGV[5]
if (redis.call('HGET', KEYS[4], ARGV[7]) or '') ~= ARGV[8] then
  redis.call('ZREM', KEYS[2], id)
  redis.call('HDEL', KEYS[3], id)
  return {0, 0}
end
local due, storedAt = string.match(redis.call('GET', KEYS[1]) or '', '^(%S+) (%S+)$')
due = tonumber(due)
-- Its times say nothing once Redis's clock was set back
if not due or due < now or tonumber(storedAt) > now + ${setBackMs} then due = now end
local room = interval * (tonumber(ARGV[2]) - tonumber(ARGV[3]))
local wait = due + interval - room - now
for _, first in ipairs(redis.call('ZRANGE', KEYS[2], 0, 7)) do
  local time = tonumber(redis.call('HGET', KEYS[3], first) or 0)
  local isAwaited = time > now - ${missedMs} and time <= now + ${longestMs} + ${setBackMs}
  if isAwaited or first == id then break end
  redis.call('ZREM', KEYS[2], first)
  redis.call('HDEL', KEYS[3], first)
end
redis.call('ZADD', KEYS[2], 'NX', tonumber(ARGV[4]) * 1e14 + now, id)
local rank = redis.call('ZRANK', KEYS[2], id)
local leave, at = ARGV[6] == '1', 0
if wait + rank * interval <= 0 then
  redis.call('SET', KEYS[1], string.format('%.0f %.0f', due + interval, now), 'PX', math.ceil(due + interval - now) + 1000)
  redis.call('HSET', KEYS[4], ARGV[7], ARGV[9] .. ' ' .. string.format('%d', now))
  wait, leave, at = 0, true, now
else
  wait = math.min(wait + rank * interval, ${longestMs})
end
if leave then
  redis.call('ZREM', KEYS[2], id)
  redis.call('HDEL', KEYS[3], id)
else
  redis.call('HSET', KEYS[3], id, now + wait)
  redis.call('PEXPIRE', KEYS[2], 60000)
  redis.call('PEXPIRE', KEYS[3], 60000)
end
return {math.ceil(wait), at}
`;

/** Intervals in ms. `reserve` of the burst is for what is more urgent: results before cards, last edits before others. */
export type SlackLimits = Record<"posts" | "edits", Limit>;
type Limit = { interval: number; burst: number; reserve: number };

const slackLimits: SlackLimits = {
  posts: { interval: 1000, burst: 4, reserve: 2 },
  edits: { interval: 60_000 / 50, burst: 20, reserve: 8 },
};

/**
 * Slack's rate limits, shared by all processes: about one message a second per channel, and 50 edits a minute for the
 * workspace (https://docs.slack.dev/apis/web-api/rate-limits).
 */
export function createRateLimiter(
  redis: RedisClient,
  key: Keys,
  { posts, edits }: SlackLimits = slackLimits,
  /** Told how long something has to wait, each time that it is asked or told to (ms). */
  onWait: (limit: "slack-posts" | "slack-edits", ms: number) => void = () => undefined,
) {
  const runTake = defineScript(redis, "gatehousePaceTake", take);
  const takeOf = async (
    place: readonly ["post", string] | readonly ["edit"],
    limits: Limit,
    { id, urgency = "result", isJoining = false, mark }: Turn,
  ): Promise<Taken> => {
    const rank = urgencies.indexOf(urgency);
    const [waitMs, takenAt] = (await runTake(
      [...["pace", "line", "turns"].map((kind) => key(kind, ...place)), mark.hash],
      [
        limits.interval,
        limits.burst,
        rank >= urgencies.indexOf("card") ? limits.reserve : 0,
        rank,
        id,
        isJoining ? 1 : 0,
        mark.field,
        mark.before,
        mark.doing,
      ],
    )) as [number, number];
    // What joins others doesn't wait
    if (!isJoining) onWait(`slack-${place[0]}s`, waitMs);
    return { waitMs, at: takenAt || undefined };
  };
  return {
    /** A turn to post in that channel. */
    post: (channelId: string, turn: Turn) => takeOf(["post", channelId], posts, turn),
    /** A turn to edit. Edits that are not the last of their message leave room for those that are. */
    edit: ({ isLast, ...turn }: Turn & { isLast: boolean }) =>
      takeOf(["edit"], edits, { ...turn, urgency: isLast ? "result" : "card" }),
    /** Slack said to wait. */
    async pause(what: { post: string } | "edit", forMs: number): Promise<void> {
      const [place, { interval, burst }] =
        what === "edit" ? [["edit"], edits] : [["post", what.post], posts];
      onWait(what === "edit" ? "slack-edits" : "slack-posts", forMs);
      const waitMs = Math.ceil(forMs + interval * (burst - 1));
      const at = await redisNow(redis);
      await redis.set(key("pace", ...place), `${at + waitMs} ${at}`, "PX", waitMs + 1000);
    },
  };
}
