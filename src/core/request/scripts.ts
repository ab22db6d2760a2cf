import { wakeLua } from "../../redis/pending.ts";
import { defineScript, type RedisClient, redisTimeLua } from "../../redis/redis.ts";
import { keepFinalMs } from "./record.ts";

/**
 * Adds a step to the history in KEYS[1], with how long after the request's creation it was taken
 * (ms). `step` is what `stepText` returns.
 */
export const keepStep = (step: string) => `
  local taken = now - redis.call('HGET', KEYS[1], 'createdAt') .. ' ' .. ${step} .. '\\n'
  redis.call('HSET', KEYS[1], 'history', (redis.call('HGET', KEYS[1], 'history') or '') .. taken)`;

/**
 * All keys carry one hash tag, so each script sees one slot. Values are opaque to Lua, which never re-encodes JSON.
 */

/** How long an origin names the request that it made (ms). */
const originMs = 24 * 3600_000;
/** When another worker polls after a claim, in case the one that sends dies (ms). */
const firstPollMs = 1000;

/** What is pending of a request: its messages, its next step, and the polls that it waits for (`redis/pending.ts`). */
export const pendingKinds = {
  messages: "request",
  step: "step",
  poll: "poll",
} as const;
const messagesOf = `'${pendingKinds.messages} ' .. `;
const stepOf = `'${pendingKinds.step} ' .. `;
const pollOf = `'${pendingKinds.poll} ' .. `;

/** Makes its messages due now: an edit that waits for its turn must not hold up a message that this move owes. */
export const owesMessages = (pending: string, id: string) => `wake(${pending}, ${messagesOf}${id})`;
/** The request has a step to take. */
export const hasStep = (pending: string, id: string) => `wake(${pending}, ${stepOf}${id})`;
export const hasNoStep = (pending: string, id: string) =>
  `redis.call('ZREM', ${pending}, ${stepOf}${id})`;

/**
 * Creates a request, unless its ID or its origin has one, or an equal one is open or was just done.
 *
 * KEYS request, ask, same, open, recent, byPerson, byTarget, audit, pending
 * ARGV id, record, state, its facts, audit record, key prefix of requests, digest ('' without approvals), when they expire, how
 *      many are needed, requester, how long ago an equal one was just done (ms), whether an equal draft doesn't count (0|1)
 * → {id, 1} when created, {id of the older one, 0} otherwise
 */
export const create = `${redisTimeLua}${wakeLua}
if redis.call('EXISTS', KEYS[1]) == 1 then return {ARGV[1], 0} end
local older = redis.call('GET', KEYS[2])
if older then return {older, 0} end
older = redis.call('GET', KEYS[3])
if older then
  local found = redis.call('HMGET', ARGV[6] .. older, 'final', 'createdAt', 'state')
  local isOpen = found[1] == '0' and not (ARGV[12] == '1' and found[3] == 'draft')
  if isOpen or (found[3] == 'done' and now - tonumber(found[2]) < tonumber(ARGV[11])) then
    redis.call('SET', KEYS[2], older, 'PX', ${originMs})
    return {older, 0}
  end
end
redis.call('HSET', KEYS[1], 'record', ARGV[2], 'state', ARGV[3], 'final', '0', 'attempt', '0', 'owner', '',
  'revision', '1', 'createdAt', now, 'changedAt', now, 'stage', ARGV[4])
if ARGV[7] ~= '' then
  redis.call('HSET', KEYS[1], 'digest', ARGV[7], 'expiresAt', ARGV[8], 'required', ARGV[9], 'requester', ARGV[10])
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ${originMs})
redis.call('SET', KEYS[3], ARGV[1], 'PX', ${originMs})
redis.call('ZADD', KEYS[4], now, ARGV[1])
for i = 5, 7 do redis.call('ZADD', KEYS[i], now, ARGV[1]) end
for i = 6, 7 do
  redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now - ${keepFinalMs})
  redis.call('PEXPIRE', KEYS[i], ${keepFinalMs})
end
redis.call('XADD', KEYS[8], '*', 'at', now, 'record', ARGV[5])
${owesMessages("KEYS[9]", "ARGV[1]")}
if ARGV[3] == 'authorized' then ${hasStep("KEYS[9]", "ARGV[1]")} end
return {ARGV[1], 1}
`;

/**
 * Refuses when the request changed since it was read. It compares the revision and the nonce of the
 * claim, because another worker's claim may have the same revision after a failover that lost writes.
 */
const compareLua = `${redisTimeLua}${wakeLua}
local is = redis.call('HMGET', KEYS[1], 'revision', 'attempt')
if not is[1] then return {'gone'} end
local nonce = redis.call('HGET', KEYS[1], 'claim:' .. is[2]) or ''
if is[1] .. ' ' .. nonce ~= ARGV[2] then return {'changed'} end
`;

const unlessFrozenLua = `
local freeze = redis.call('GET', KEYS[7])
if freeze then return {'frozen', freeze} end
`;

/**
 * Writes the request, its history, its audit record, and its pending work; begins or ends its polls;
 * and frees the locks of a request that ended.
 */
const saveLua = `
local nextRevision = redis.call('HINCRBY', KEYS[1], 'revision', 1)
redis.call('HSET', KEYS[1], 'state', ARGV[3], 'final', ARGV[4], 'attempt', ARGV[5], 'owner', ARGV[6], 'stage', ARGV[7])
local entry = ''
if ARGV[8] ~= '' then
  redis.call('HSET', KEYS[1], 'changedAt', now)
  ${keepStep("ARGV[8]")}
  entry = redis.call('XADD', KEYS[3], '*', 'at', now, 'record', ARGV[9])
end
if ARGV[11] == '0' then ${owesMessages("KEYS[4]", "ARGV[1]")} end
-- While a worker takes a step, its score stays
if ARGV[3] == 'authorized' or ARGV[3] == 'sending' then redis.call('ZADD', KEYS[4], 'NX', now, ${stepOf}ARGV[1])
else ${hasNoStep("KEYS[4]", "ARGV[1]")} end
if ARGV[3] == 'sending' or ARGV[3] == 'accepted' or ARGV[3] == 'unclear' then
  redis.call('SADD', KEYS[5], ARGV[1])
  redis.call('ZADD', KEYS[4], 'NX', now + ${firstPollMs}, ${pollOf}ARGV[10])
elseif redis.call('SREM', KEYS[5], ARGV[1]) == 1 and redis.call('EXISTS', KEYS[5]) == 0 then
  redis.call('ZREM', KEYS[4], ${pollOf}ARGV[10])
end
if ARGV[4] == '1' then
  redis.call('ZREM', KEYS[2], ARGV[1])
  if redis.call('GET', KEYS[6]) == ARGV[1] then redis.call('DEL', KEYS[6]) end
  redis.call('PEXPIRE', KEYS[1], ${keepFinalMs})
end
`;

/**
 * Moves a request, or saves new facts of it.
 *
 * KEYS request, open, audit, pending, watched, lock
 * ARGV id, revision and nonce it was read at, state, final (0|1), attempt, owner ('' for none), facts of that state, step of its history ('' for
 *      none), audit record of that, key of its polls, whether Slack shows nothing else by it (0|1)
 * → {'moved', revision, now} | {'changed'} | {'gone'}
 */
export const move = `${compareLua}${saveLua}
return {'moved', nextRevision, now}
`;

/**
 * Moves a request to its claim and takes its lock, unless changes are frozen or another request holds
 * one of these locks.
 *
 * KEYS as of `move`, then freeze, ...locks that must be free   ARGV as of `move`, then the nonce of this claim
 * → {'moved', revision, now, what INFO says of replicas} | {'changed'} | {'gone'} | {'frozen', freeze} | {'locked', holder}
 */
export const claim = `${compareLua}${unlessFrozenLua}
for i = 6, #KEYS do
  local holder = i ~= 7 and redis.call('GET', KEYS[i])
  if holder and holder ~= ARGV[1] then return {'locked', holder} end
end
redis.call('SET', KEYS[6], ARGV[1])
redis.call('HSET', KEYS[1], 'claim:' .. ARGV[5], ARGV[12])
${saveLua}
local replication = redis.pcall('INFO', 'replication')
return {'moved', nextRevision, now, type(replication) == 'string' and replication or ''}
`;

/**
 * Ends a request and keeps a VM's pin in the same step, unless changes are frozen.
 *
 * KEYS as of `move`, then freeze, pins   ARGV as of `move`, then VM, its pin ('' drops it)
 * → {'moved', revision, now} | {'changed'} | {'gone'} | {'frozen', freeze}
 */
export const keepPin = `${compareLua}${unlessFrozenLua}${saveLua}
if ARGV[13] == '' then redis.call('HDEL', KEYS[8], ARGV[12])
else redis.call('HSET', KEYS[8], ARGV[12], entry .. ' ' .. ARGV[13]) end
return {'moved', nextRevision, now}
`;

/**
 * Tells whether the journal has a claim, right before its call leaves.
 *
 * KEYS request   ARGV attempt, nonce → {now, 1 when it is in `sending` with that claim, otherwise 0}
 */
const holds = `${redisTimeLua}
local r = redis.call('HMGET', KEYS[1], 'state', 'attempt', 'claim:' .. ARGV[1])
return {now, (r[1] == 'sending' and r[2] == ARGV[1] and r[3] == ARGV[2]) and 1 or 0}
`;

export const defineHolds = (redis: RedisClient) => defineScript(redis, "gatehouseHolds", holds);
