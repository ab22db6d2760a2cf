import { redisTimeLua } from "../../redis/redis.ts";

/** Adds a step, and when it was taken after the request was made (ms), to the history in KEYS[1]. `step`: as `stepText` has it. */
export const keepStep = (step: string) => `
  local taken = now - redis.call('HGET', KEYS[1], 'createdAt') .. ' ' .. ${step} .. '\\n'
  redis.call('HSET', KEYS[1], 'history', (redis.call('HGET', KEYS[1], 'history') or '') .. taken)`;

/**
 * All keys carry one hash tag, so each script sees one slot. Values are opaque to Lua, which never re-encodes JSON.
 */

/** The freeze ('' for none), and for how long calls pause (ms, below 0: they don't). */
const stopsLua = (freeze: string, throttled: string) =>
  `redis.call('GET', KEYS[${freeze}]) or '', redis.call('PTTL', KEYS[${throttled}])`;

/**
 * Creates a request unless its ID or interaction has one, or an equal one is open or was just done.
 *
 * KEYS request, ask, same, open, recent, byPerson, byTarget, audit, outbox, freeze, throttled
 * ARGV id, record, state, progress, audit record, how long an equal request counts as the same (ms),
 *      key prefix of requests, digest ('' without approvals), when they expire, how many are needed, requester,
 *      how long lists of a person and a target remember (ms), what stands for its time in the record (with ':' for when it ends), how
 *      long it runs from then on (ms)
 * → {id, 'new', now, then what may stop a step as in `opening`} when created, {id of the older one, 'same'} otherwise
 */
export const create = `${redisTimeLua}
if redis.call('EXISTS', KEYS[1]) == 1 then return {ARGV[1], 'same'} end
local older = redis.call('GET', KEYS[2])
if older then return {older, 'same'} end
older = redis.call('GET', KEYS[3])
if older then
  local found = redis.call('HMGET', ARGV[7] .. older, 'final', 'createdAt', 'state')
  if found[1] == '0' or (found[3] == 'done' and now - tonumber(found[2]) < tonumber(ARGV[6])) then
    redis.call('SET', KEYS[2], older, 'PX', 86400000)
    return {older, 'same'}
  end
end
local record = string.gsub(ARGV[2], '"' .. ARGV[13] .. '"', string.format('%d', now))
record = string.gsub(record, '"' .. ARGV[13] .. ':"', string.format('%d', now + ARGV[14]))
redis.call('HSET', KEYS[1], 'record', record, 'state', ARGV[3], 'final', '0', 'attempt', '0', 'owner', '',
  'revision', '1', 'createdAt', now, 'changedAt', now, 'progress', ARGV[4])
if ARGV[8] ~= '' then
  redis.call('HSET', KEYS[1], 'digest', ARGV[8], 'expiresAt', ARGV[9], 'required', ARGV[10], 'requester', ARGV[11])
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', 86400000)
redis.call('SET', KEYS[3], ARGV[1], 'PX', 86400000)
redis.call('ZADD', KEYS[4], now, ARGV[1])
for i = 5, 7 do redis.call('ZADD', KEYS[i], now, ARGV[1]) end
for i = 6, 7 do
  redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now - ARGV[12])
  redis.call('PEXPIRE', KEYS[i], ARGV[12])
end
redis.call('XADD', KEYS[8], '*', 'at', now, 'record', ARGV[5])
redis.call('ZADD', KEYS[9], now, ARGV[1])
return {ARGV[1], 'new', now, ${stopsLua("10", "11")}}
`;

/**
 * Moves a request, or saves progress. Refuses when it changed since it was read: by its revision, and by the nonce of its
 * claim, because after a failover that lost writes another worker's claim may bear the same revision.
 *
 * KEYS request, history that an older version kept beside it, open, audit, outbox, freeze, watch, pins, polls, pollers, take, ...free
 * ARGV id, revision it was read at, state, final (0|1), attempt, owner ('' for none), progress, step of its history ('' for none), audit record,
 *      tell (0|1|2: only where a shared card shows it), claim (0|1), watched (0|1), how long a final request is kept (ms), nonce of the attempt it was read at
 *      ('' for none), nonce of this claim, VM whose pin is kept ('' for none), its pin ('' drops it), key of its polls, what stands for the
 *      time of the move in the progress, the time it was decided by ('' when that was Redis') and how far off that may be (ms),
 *      worker that polls it from now on, unless another one does ('' for none), lease of that (ms), whoever does (0|1)
 * → {'moved', revision, now, told (0|1), of a claim what INFO says of replicas, alone (0|1: that worker polls this request and no other)} |
 *   {'changed'} | {'gone'} | {'frozen', freeze} | {'locked', holder} | {'late', now}
 */
export const move = `${redisTimeLua}
local revision = redis.call('HGET', KEYS[1], 'revision')
if not revision then return {'gone'} end
if revision ~= ARGV[2] then return {'changed'} end
local nonce = redis.call('HGET', KEYS[1], 'claim:' .. (redis.call('HGET', KEYS[1], 'attempt') or '')) or ''
if nonce ~= ARGV[14] then return {'changed'} end
if ARGV[20] ~= '' and math.abs(now - ARGV[20]) > tonumber(ARGV[21]) then return {'late', now} end
if ARGV[11] == '1' or ARGV[16] ~= '' then
  local freeze = redis.call('GET', KEYS[6])
  if freeze then return {'frozen', freeze} end
end
if ARGV[11] == '1' then
  for i = 11, #KEYS do
    local holder = redis.call('GET', KEYS[i])
    if holder and holder ~= ARGV[1] then return {'locked', holder} end
  end
  redis.call('SET', KEYS[11], ARGV[1])
  redis.call('HSET', KEYS[1], 'claim:' .. ARGV[5], ARGV[15])
end
local nextRevision = redis.call('HINCRBY', KEYS[1], 'revision', 1)
local progress = string.gsub(ARGV[7], ARGV[19], string.format('%d', now))
redis.call('HSET', KEYS[1], 'state', ARGV[3], 'final', ARGV[4], 'attempt', ARGV[5], 'progress', progress)
if ARGV[6] == '' then redis.call('HDEL', KEYS[1], 'owner') else redis.call('HSET', KEYS[1], 'owner', ARGV[6]) end
if ARGV[8] ~= '' then
  redis.call('HSET', KEYS[1], 'changedAt', now)
  ${keepStep("ARGV[8]")}
end
local entry = ''
if ARGV[9] ~= '' then entry = redis.call('XADD', KEYS[4], '*', 'at', now, 'record', ARGV[9]) end
if ARGV[16] ~= '' then
  if ARGV[17] == '' then redis.call('HDEL', KEYS[8], ARGV[16])
  else redis.call('HSET', KEYS[8], ARGV[16], entry .. ' ' .. ARGV[17]) end
end
local told = ARGV[10] == '1' or (ARGV[10] == '2' and string.sub(redis.call('HGET', KEYS[1], 'said:card') or '', 1, 7) == 'shared ')
if told then redis.call('ZADD', KEYS[5], 'NX', now, ARGV[1]) end
local alone = 0
if ARGV[12] == '1' then
  redis.call('SADD', KEYS[7], ARGV[1])
  local poller = ARGV[24] ~= '1' and redis.call('HGET', KEYS[10], ARGV[18]) or ARGV[22]
  if ARGV[22] ~= '' and poller == ARGV[22] then
    redis.call('HSET', KEYS[10], ARGV[18], poller)
    redis.call('ZADD', KEYS[9], now + ARGV[23], ARGV[18])
    if redis.call('SCARD', KEYS[7]) == 1 then alone = 1 end
  end
elseif redis.call('SREM', KEYS[7], ARGV[1]) == 1 and redis.call('EXISTS', KEYS[7]) == 0 then
  redis.call('ZREM', KEYS[9], ARGV[18])
  redis.call('HDEL', KEYS[10], ARGV[18])
end
if ARGV[4] == '1' then
  redis.call('ZREM', KEYS[3], ARGV[1])
  if redis.call('GET', KEYS[11]) == ARGV[1] then redis.call('DEL', KEYS[11]) end
  redis.call('PEXPIRE', KEYS[1], ARGV[13])
  redis.call('PEXPIRE', KEYS[2], ARGV[13])
end
local replication = ARGV[11] == '1' and redis.pcall('INFO', 'replication')
return {'moved', nextRevision, now, told and 1 or 0, type(replication) == 'string' and replication or '', alone}
`;

/**
 * What a step begins with, in one go.
 *
 * KEYS request, freeze, throttled → now, the request's fields, what may stop it
 */
export const opening = `${redisTimeLua}
return {now, redis.call('HGETALL', KEYS[1]), ${stopsLua("2", "3")}}
`;

/**
 * What the journal knows of claims, at the very end before their call leaves, or when they must be durable. The write makes a
 * WAIT or WAITAOF that follows on this connection cover everything written before it, by any connection.
 *
 * KEYS fence, ...requests   ARGV write (0|1), then attempt, nonce of each request
 * → now, then for each request: 1 when it is in `sending` with that claim, otherwise 0
 */
export const holds = `${redisTimeLua}
if ARGV[1] == '1' then redis.call('SET', KEYS[1], now) end
local found = {now}
for i = 2, #KEYS do
  local r = redis.call('HMGET', KEYS[i], 'state', 'attempt', 'claim:' .. ARGV[2 * i - 2])
  found[i] = (r[1] == 'sending' and r[2] == ARGV[2 * i - 2] and r[3] == ARGV[2 * i - 1]) and 1 or 0
end
return found
`;
