import { wakeLua } from "../../redis/pending.ts";
import { defineScript, type RedisClient, redisTimeLua } from "../../redis/redis.ts";
import { keepFinalMs } from "./record.ts";

/**
 * Adds a step to the history of the script's `request`, with how long after the request's creation it
 * was taken (ms). `step` is what `stepText` returns.
 */
export const keepStep = (step: string) => `
  local taken = now - redis.call('HGET', request, 'createdAt') .. ' ' .. ${step} .. '\\n'
  redis.call('HSET', request, 'history', (redis.call('HGET', request, 'history') or '') .. taken)`;

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
 * `digest` is '' without approvals, `sameForMs` is for how long an equal one that was done counts, and
 * `passesDraft` (0|1) says whether an equal draft doesn't count.
 * → {id, 1} when created, {id of the older one, 0} otherwise
 */
export const create = `${redisTimeLua}${wakeLua}
local request, ask, same, open, recent, byPerson, byTarget, audit, pending = unpack(KEYS)
local id, record, state, facts, auditRecord, requestPrefix, digest, expiresAt, required, requester, sameForMs, passesDraft = unpack(ARGV)
if redis.call('EXISTS', request) == 1 then return {id, 0} end
local older = redis.call('GET', ask)
if older then return {older, 0} end
older = redis.call('GET', same)
if older then
  local final, createdAt, olderState = unpack(redis.call('HMGET', requestPrefix .. older, 'final', 'createdAt', 'state'))
  local isOpen = final == '0' and not (passesDraft == '1' and olderState == 'draft')
  if isOpen or (olderState == 'done' and now - tonumber(createdAt) < tonumber(sameForMs)) then
    redis.call('SET', ask, older, 'PX', ${originMs})
    return {older, 0}
  end
end
redis.call('HSET', request, 'record', record, 'state', state, 'final', '0', 'attempt', '0', 'owner', '',
  'revision', '1', 'createdAt', now, 'changedAt', now, 'stage', facts)
if digest ~= '' then
  redis.call('HSET', request, 'digest', digest, 'expiresAt', expiresAt, 'required', required, 'requester', requester)
end
redis.call('SET', ask, id, 'PX', ${originMs})
redis.call('SET', same, id, 'PX', ${originMs})
for _, list in ipairs({open, recent, byPerson, byTarget}) do redis.call('ZADD', list, now, id) end
for _, list in ipairs({byPerson, byTarget}) do
  redis.call('ZREMRANGEBYSCORE', list, '-inf', now - ${keepFinalMs})
  redis.call('PEXPIRE', list, ${keepFinalMs})
end
redis.call('XADD', audit, '*', 'at', now, 'record', auditRecord)
${owesMessages("pending", "id")}
if state == 'authorized' then ${hasStep("pending", "id")} end
return {id, 1}
`;

/**
 * Names the arguments of every move. `readAt` is the revision and the nonce that the request was read at,
 * `owner` and `step` (of its history) are '' for none, and `final` and `isSilent` are 0|1.
 */
const moveLua = `${redisTimeLua}${wakeLua}
local request, open, audit, pending, watched, lock = unpack(KEYS, 1, 6)
local id, readAt, state, final, attempt, owner, facts, step, auditRecord, pollKey, isSilent = unpack(ARGV, 1, 11)
`;

/**
 * Refuses when the request changed since it was read. It compares the revision and the nonce of the
 * claim, because another worker's claim may have the same revision after a failover that lost writes.
 */
const compareLua = `
local revision, lastAttempt = unpack(redis.call('HMGET', request, 'revision', 'attempt'))
if not revision then return {'gone'} end
local lastNonce = redis.call('HGET', request, 'claim:' .. lastAttempt) or ''
if revision .. ' ' .. lastNonce ~= readAt then return {'changed'} end
`;

const unlessFrozenLua = `
local freeze = redis.call('GET', freezeKey)
if freeze then return {'frozen', freeze} end
`;

/**
 * Writes the request, its history, its audit record, and its pending work; begins or ends its polls;
 * and frees the locks of a request that ended.
 */
const saveLua = `
local nextRevision = redis.call('HINCRBY', request, 'revision', 1)
redis.call('HSET', request, 'state', state, 'final', final, 'attempt', attempt, 'owner', owner, 'stage', facts)
local entry = ''
if step ~= '' then
  redis.call('HSET', request, 'changedAt', now)
  ${keepStep("step")}
  entry = redis.call('XADD', audit, '*', 'at', now, 'record', auditRecord)
end
if isSilent == '0' then ${owesMessages("pending", "id")} end
-- While a worker takes a step, its score stays
if state == 'authorized' or state == 'sending' then redis.call('ZADD', pending, 'NX', now, ${stepOf}id)
else ${hasNoStep("pending", "id")} end
if state == 'sending' or state == 'accepted' or state == 'unclear' then
  redis.call('SADD', watched, id)
  redis.call('ZADD', pending, 'NX', now + ${firstPollMs}, ${pollOf}pollKey)
elseif redis.call('SREM', watched, id) == 1 and redis.call('EXISTS', watched) == 0 then
  redis.call('ZREM', pending, ${pollOf}pollKey)
end
if final == '1' then
  redis.call('ZREM', open, id)
  if redis.call('GET', lock) == id then redis.call('DEL', lock) end
  redis.call('PEXPIRE', request, ${keepFinalMs})
end
`;

/**
 * Moves a request, or saves new facts of it.
 *
 * → {'moved', revision, now} | {'changed'} | {'gone'}
 */
export const move = `${moveLua}${compareLua}${saveLua}
return {'moved', nextRevision, now}
`;

/**
 * Moves a request to its claim and takes its lock, unless changes are frozen or another request holds
 * that lock or one of those that must be free, which are the keys after the freeze's.
 *
 * → {'moved', revision, now, what INFO says of replicas} | {'changed'} | {'gone'} | {'frozen', freeze} | {'locked', holder}
 */
export const claim = `${moveLua}
local freezeKey, nonce = KEYS[7], ARGV[12]
${compareLua}${unlessFrozenLua}
for _, needed in ipairs({lock, unpack(KEYS, 8)}) do
  local holder = redis.call('GET', needed)
  if holder and holder ~= id then return {'locked', holder} end
end
redis.call('SET', lock, id)
redis.call('HSET', request, 'claim:' .. attempt, nonce)
${saveLua}
local replication = redis.pcall('INFO', 'replication')
return {'moved', nextRevision, now, type(replication) == 'string' and replication or ''}
`;

/**
 * Ends a request and keeps a VM's pin in the same step, unless changes are frozen. A pin of '' is
 * dropped.
 *
 * → {'moved', revision, now} | {'changed'} | {'gone'} | {'frozen', freeze}
 */
export const keepPin = `${moveLua}
local freezeKey, pins = KEYS[7], KEYS[8]
local vm, pin = ARGV[12], ARGV[13]
${compareLua}${unlessFrozenLua}${saveLua}
if pin == '' then redis.call('HDEL', pins, vm)
else redis.call('HSET', pins, vm, entry .. ' ' .. pin) end
return {'moved', nextRevision, now}
`;

/**
 * Tells whether the journal has a claim, right before its call leaves.
 *
 * → {now, 1 when it is in `sending` with that claim, otherwise 0}
 */
const holds = `${redisTimeLua}
local request, attempt, nonce = KEYS[1], unpack(ARGV)
local state, lastAttempt, lastNonce = unpack(redis.call('HMGET', request, 'state', 'attempt', 'claim:' .. attempt))
return {now, (state == 'sending' and lastAttempt == attempt and lastNonce == nonce) and 1 or 0}
`;

export const defineHolds = (redis: RedisClient) => defineScript(redis, "gatehouseHolds", holds);
