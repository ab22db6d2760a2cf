import type { Telemetry } from "../log/telemetry.ts";
import type { QueueDepth, Queues } from "../jobs/queues.ts";
import type { Polls } from "../requests/journal/polls.ts";
import { defineScript, type Keys, redisTimeLua, type RedisClient } from "../redis/redis.ts";

/** The oldest so many open requests are looked at: some milliseconds of Redis' time, once a scrape. */
const maxCounted = 5_000;
/** Of the messages that wait, the age is that of the oldest among so many. */
const maxOwed = 200;

/**
 * What all processes share, in one read. Ages in milliseconds, -1 for none.
 *
 * KEYS open, freeze, records, seals, and what is owed to Slack: requests, notices, shared cards
 * ARGV their prefixes, most open requests, most messages
 * → frozen (0|1), messages owed, age of the oldest, number of the last seal, its record's age, age of the oldest unsealed
 *   record, open requests, then for each state: its name, how many, age of the oldest
 */
const census = `${redisTimeLua}
local function old(at) return at and math.max(0, now - tonumber(at)) or -1 end
local owed = 0
local longest = -1
for i, field in ipairs({'changedAt', 'at', 'createdAt'}) do
  local list = KEYS[4 + i]
  owed = owed + redis.call('ZCARD', list)
  for _, id in ipairs(redis.call('ZRANGE', list, 0, ARGV[5] - 1)) do
    -- a shared card that was posted is on its list for what changed since, which has no time
    local isOld = i == 3 and redis.call('HGET', ARGV[i] .. id, 'card')
    if not isOld then longest = math.max(longest, old(redis.call('HGET', ARGV[i] .. id, field))) end
  end
end
local seal = redis.call('XREVRANGE', KEYS[4], '+', '-', 'COUNT', 1)[1]
local named = {}
if seal then for i = 1, #seal[2], 2 do named[seal[2][i]] = seal[2][i + 1] end end
local from = named.id and '(' .. named.id or '-'
local unsealed = redis.call('XRANGE', KEYS[3], from, '+', 'COUNT', 1)[1]
local counts, ages, states = {}, {}, {}
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, ARGV[4] - 1)) do
  local r = redis.call('HMGET', ARGV[1] .. id, 'state', 'changedAt', 'createdAt')
  local state, since = r[1], r[2]
  if state == 'draft' then since = r[3] end
  -- a reminder is a change, too
  if state == 'unknown' then
    since = string.match(redis.call('HGET', ARGV[1] .. id, 'progress') or '', '"unknownSince":(%d+)') or since
  end
  if state then
    if not counts[state] then states[#states + 1] = state end
    counts[state] = (counts[state] or 0) + 1
    ages[state] = math.max(ages[state] or 0, old(since))
  end
end
local found = {redis.call('EXISTS', KEYS[2]), owed, longest,
  seal and tonumber(string.match(seal[1], '^%d+')) or 0, old(named.at),
  unsealed and old(string.match(unsealed[1], '^%d+')) or -1, redis.call('ZCARD', KEYS[1])}
for _, state in ipairs(states) do
  found[#found + 1] = state
  found[#found + 1] = counts[state]
  found[#found + 1] = ages[state]
end
return found
`;

/** The states that a request can be open in, shown also while none is. */
const openStates = "draft authorized sending accepted unclear not-applied unknown".split(" ");

const seconds = (ms: number) => Math.max(0, ms) / 1000;

/** Reads what all processes share into the gauges. Rejects when Redis is away. */
export function createMeasure(on: {
  redis: RedisClient;
  key: Keys;
  queues: Pick<Queues, "depth">;
  polls: Pick<Polls, "depth">;
  telemetry: Telemetry;
}): () => Promise<void> {
  const { redis, key, telemetry } = on;
  const { shared } = telemetry;
  const runCensus = defineScript(redis, "gatehouseCensus", census);

  async function roundTrip(): Promise<number> {
    const began = performance.now();
    await redis.ping();
    return performance.now() - began;
  }

  async function count(): Promise<void> {
    const names = [
      key("requests", "open"),
      key("freeze"),
      key("audit"),
      key("audit", "seals"),
      key("outbox"),
      key("notices"),
      key("shared-cards"),
    ];
    const prefixes = ["request", "notice", "shared"].map((kind) => key(kind, ""));
    const args = [...prefixes, maxCounted, maxOwed];
    const [numbers, states] = split((await runCensus(names, args)) as (number | string)[]);
    const [frozen = 0, owed = 0, owedMs = 0, sealed = 0, headMs = 0, unsealedMs = 0, open = 0] =
      numbers;
    shared.frozen.set(frozen);
    shared.outboxDepth.set(owed);
    shared.outboxAge.set(seconds(owedMs));
    shared.auditRecords.reset();
    shared.auditRecords.inc(sealed);
    shared.auditHeadAge.set(seconds(headMs));
    shared.auditUnsealedAge.set(seconds(unsealedMs));
    shared.openRequests.reset();
    shared.openRequestAge.reset();
    for (const state of new Set([...openStates, ...states.keys()])) {
      const [many, ms] = states.get(state) ?? [0, 0];
      shared.openRequests.set({ state }, many);
      shared.openRequestAge.set({ state }, seconds(ms));
    }
    const counted = [...states.values()].reduce((sum, [many]) => sum + many, 0);
    shared.openRequests.set({ state: "uncounted" }, Math.max(0, open - counted));
  }

  /** Under the name of the queue that they once were. */
  async function polls(): Promise<QueueDepth> {
    const { overdue, waiting, oldestAt } = await on.polls.depth();
    return { queue: "watches", waiting: overdue, active: 0, delayed: waiting, oldestAt };
  }

  async function countJobs(): Promise<void> {
    for (const { queue, oldestAt, ...states } of await Promise.all([on.queues.depth(), polls()])) {
      for (const [state, many] of Object.entries(states))
        shared.queueJobs.set({ queue, state }, many);
      shared.queueAge.set({ queue }, oldestAt === undefined ? 0 : seconds(Date.now() - oldestAt));
    }
  }

  return async () => {
    shared.redisRoundTrip.set(seconds(await roundTrip()));
    await Promise.all([count(), countJobs()]);
  };
}

/** How many there are of each state, and the age of the oldest (ms). */
type ByState = Map<string, readonly [many: number, ageMs: number]>;

function split(reply: readonly (number | string)[]): [numbers: number[], states: ByState] {
  const numbers = reply.slice(0, 7).map(Number);
  const states: ByState = new Map();
  for (let at = 7; at + 2 < reply.length; at += 3)
    states.set(String(reply[at]), [Number(reply[at + 1]), Number(reply[at + 2])]);
  return [numbers, states];
}
