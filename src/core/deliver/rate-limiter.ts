import {
  type Keys,
  type RedisClient,
  defineScript,
  redisNow,
  redisTimeLua,
  setBackMs,
} from "../../redis/redis.ts";

export type RateLimiter = ReturnType<typeof createRateLimiter>;

/**
 * The order in which messages go when more are due than Slack takes: first those on which a person
 * must decide, then results, then cards of requests that still run, then the rest.
 */
const urgencies = ["decision", "result", "card", "rest"] as const;
export type Urgency = (typeof urgencies)[number];

/** A request for a turn to post or edit. */
export interface Turn {
  /** Identifies the message while it waits. */
  id: string;
  urgency?: Urgency | undefined;
  /** The message doesn't wait in line. When it can't go now, it joins a message of others. */
  isJoining?: boolean | undefined;
  mark: Mark;
}

/**
 * The mark that is set in the same step in which a turn is taken. The turn is taken only if the
 * field still has the value that was read (`before`, "" for none).
 */
export interface Mark {
  /** The key of the hash that holds the field. */
  hash: string;
  field: string;
  before: string;
  /** The field becomes `<doing> <Redis time (ms)>`. */
  doing: string;
  /** Other fields on which the message depends. The turn is taken only if they, too, are as read. */
  alongside?: readonly FieldAlongside[] | undefined;
}

/** A field that must still have the value that was read, and what it becomes with the mark. */
export interface FieldAlongside {
  field: string;
  before: string;
  becomes: string;
}

/** The answer to a request for a turn. */
export type TurnAnswer =
  /** The turn was taken, and its mark set, at this time (Redis, ms). */
  | { kind: "taken"; at: number }
  /** The turn comes in this time (ms). */
  | { kind: "wait"; waitMs: number }
  /** A field has changed since it was read. */
  | { kind: "changed" };

/** A message that doesn't come for this long after its turn is removed from the line (ms). */
const missedMs = 5000;
/**
 * The longest wait that is returned (ms). A message whose turn is further off asks again then,
 * because others may have left the line meanwhile.
 */
const longestMs = 10_000;

/**
 * Takes a turn in one leaky bucket (GCRA, which stores a theoretical arrival time), or a place in
 * the line of messages that wait for it, the most urgent first. Each message learns when its turn
 * comes, so that it needs no more calls in a long line than in a short one. Turn and mark are one
 * step, so a message whose fields have changed meanwhile uses up no turn.
 *
 * The bucket is `<theoretical arrival time> <when that was stored>`.
 *
 * KEYS bucket, line, times of turns, hash of the mark
 * ARGV interval (ms), burst, reserve, urgency (0 first), ID, whether it joins others (0|1), field,
 * its value as read ('' for none), first word of the mark, and for each field alongside: its name,
 * its value as read, its value with the mark
 * → how long to wait (ms), the time of the mark or 0
 */
const takeTurnScript = `${redisTimeLua}
local interval, id = tonumber(ARGV[1]), ARGV[5]
local isAsRead = (redis.call('HGET', KEYS[4], ARGV[7]) or '') == ARGV[8]
for i = 10, #ARGV, 3 do
  isAsRead = isAsRead and (redis.call('HGET', KEYS[4], ARGV[i]) or '') == ARGV[i + 1]
end
if not isAsRead then
  redis.call('ZREM', KEYS[2], id)
  redis.call('HDEL', KEYS[3], id)
  return {0, 0}
end
local due, storedAt = string.match(redis.call('GET', KEYS[1]) or '', '^(%S+) (%S+)$')
due = tonumber(due)
-- The stored times mean nothing after Redis's clock was set back.
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
  for i = 10, #ARGV, 3 do redis.call('HSET', KEYS[4], ARGV[i], ARGV[i + 2]) end
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

/**
 * Intervals are in ms. `reserve` is the part of the burst that is kept for more urgent messages:
 * results before cards, and last edits before others.
 */
export type SlackLimits = Record<"posts" | "edits", Limit>;
type Limit = { interval: number; burst: number; reserve: number };

const slackLimits: SlackLimits = {
  posts: { interval: 1000, burst: 4, reserve: 2 },
  edits: { interval: 60_000 / 50, burst: 20, reserve: 8 },
};

/**
 * Creates the rate limiter for Slack, which all processes share: about one message a second per
 * channel, and 50 edits a minute for the workspace
 * (https://docs.slack.dev/apis/web-api/rate-limits).
 */
export function createRateLimiter(
  redis: RedisClient,
  key: Keys,
  { posts, edits }: SlackLimits = slackLimits,
  /** Called for each request for a turn, and each pause, with the time to wait (ms). */
  onWait: (limit: "slack-posts" | "slack-edits", ms: number) => void = () => undefined,
) {
  const runTake = defineScript(redis, "gatehousePaceTake", takeTurnScript);
  const takeTurn = async (
    place: readonly ["post", string] | readonly ["edit"],
    limits: Limit,
    { id, urgency = "result", isJoining = false, mark }: Turn,
  ): Promise<TurnAnswer> => {
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
        ...(mark.alongside ?? []).flatMap(({ field, before, becomes }) => [field, before, becomes]),
      ],
    )) as [number, number];
    // A message that joins others doesn't wait, so its time isn't reported.
    if (!isJoining) onWait(`slack-${place[0]}s`, waitMs);
    if (takenAt > 0) return { kind: "taken", at: takenAt };
    return waitMs > 0 ? { kind: "wait", waitMs } : { kind: "changed" };
  };
  return {
    /** Takes a turn to post in a channel. */
    post: (channelId: string, turn: Turn) => takeTurn(["post", channelId], posts, turn),
    /**
     * Takes a turn to edit. An edit that isn't the last of its message leaves the reserve alone.
     */
    edit: ({ isLast, ...turn }: Turn & { isLast: boolean }) =>
      takeTurn(["edit"], edits, { ...turn, urgency: isLast ? "result" : "card" }),
    /** Gives no turn for this long, because Slack said to wait. */
    async pause(limit: { post: string } | "edit", forMs: number): Promise<void> {
      const [place, { interval, burst }] =
        limit === "edit" ? [["edit"], edits] : [["post", limit.post], posts];
      onWait(limit === "edit" ? "slack-edits" : "slack-posts", forMs);
      const waitMs = Math.ceil(forMs + interval * (burst - 1));
      const at = await redisNow(redis);
      await redis.set(key("pace", ...place), `${at + waitMs} ${at}`, "PX", waitMs + 1000);
    },
  };
}
