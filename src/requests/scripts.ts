/**
 * The journal's Lua. All keys carry one hash tag, so each script sees one slot. Values are opaque strings to Lua: it
 * compares, sets and lists, and never re-encodes JSON. Time is Redis time.
 */

const now = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
`;

/**
 * Creates a request unless its id is taken, the same delivery made one, or an equal one is still open or was done a
 * moment ago.
 *
 * KEYS request, ask, same, open, recent, byPerson, byTarget, audit, outbox
 * ARGV id, record, state, progress, audit record, how long an equal request counts as the same (ms),
 *      key prefix of requests, digest ('' without approvals), when they expire, how many are needed, requester
 * → {id} when created, {id of the older one, 'same'} otherwise
 */
export const create = `${now}
if redis.call('EXISTS', KEYS[1]) == 1 then return {ARGV[1], 'same'} end
local older = redis.call('GET', KEYS[2])
if older then return {older, 'same'} end
older = redis.call('GET', KEYS[3])
if older then
  local found = redis.call('HMGET', ARGV[7] .. older, 'final', 'createdAt', 'state')
  if found[1] == '0' or (found[3] == 'done' and now - tonumber(found[2]) < tonumber(ARGV[6])) then
    redis.call('SET', KEYS[2], older, 'PX', 600000)
    return {older, 'same'}
  end
end
redis.call('HSET', KEYS[1], 'record', ARGV[2], 'state', ARGV[3], 'final', '0', 'attempt', '0', 'owner', '',
  'revision', '1', 'createdAt', now, 'changedAt', now, 'progress', ARGV[4], 'requester', ARGV[11])
if ARGV[8] ~= '' then
  redis.call('HSET', KEYS[1], 'digest', ARGV[8], 'expiresAt', ARGV[9], 'required', ARGV[10])
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', 600000)
redis.call('SET', KEYS[3], ARGV[1], 'PX', 86400000)
redis.call('ZADD', KEYS[4], now, ARGV[1])
for i = 5, 7 do redis.call('ZADD', KEYS[i], now, ARGV[1]) end
redis.call('XADD', KEYS[8], '*', 'at', now, 'record', ARGV[5])
redis.call('ZADD', KEYS[9], now, ARGV[1])
return {ARGV[1], 'new'}
`;

/**
 * Moves a request, or notes progress. Refuses when it changed since it was read.
 *
 * KEYS request, history, open, audit, outbox, freeze, watch, take, ...free
 * ARGV id, revision it was read at, state, final (0|1), attempt, owner, progress, history entry, audit record,
 *      tell (0|1), claim (0|1), watched (0|1), how long a final request is kept (ms)
 * → {'moved', revision, now} | {'changed'} | {'gone'} | {'frozen', freeze} | {'locked', holder}
 */
export const move = `${now}
local revision = redis.call('HGET', KEYS[1], 'revision')
if not revision then return {'gone'} end
if revision ~= ARGV[2] then return {'changed'} end
if ARGV[11] == '1' then
  local freeze = redis.call('GET', KEYS[6])
  if freeze then return {'frozen', freeze} end
  for i = 8, #KEYS do
    local holder = redis.call('GET', KEYS[i])
    if holder and holder ~= ARGV[1] then return {'locked', holder} end
  end
  redis.call('SET', KEYS[8], ARGV[1])
end
local nextRevision = redis.call('HINCRBY', KEYS[1], 'revision', 1)
redis.call('HSET', KEYS[1], 'state', ARGV[3], 'final', ARGV[4], 'attempt', ARGV[5], 'owner', ARGV[6], 'progress', ARGV[7])
if ARGV[8] ~= '' then
  redis.call('HSET', KEYS[1], 'changedAt', now)
  redis.call('RPUSH', KEYS[2], now .. ' ' .. ARGV[8])
end
if ARGV[9] ~= '' then redis.call('XADD', KEYS[4], '*', 'at', now, 'record', ARGV[9]) end
if ARGV[10] == '1' then redis.call('ZADD', KEYS[5], 'NX', now, ARGV[1]) end
if ARGV[12] == '1' then redis.call('SADD', KEYS[7], ARGV[1]) else redis.call('SREM', KEYS[7], ARGV[1]) end
if ARGV[4] == '1' then
  redis.call('ZREM', KEYS[3], ARGV[1])
  if redis.call('GET', KEYS[8]) == ARGV[1] then redis.call('DEL', KEYS[8]) end
  redis.call('PEXPIRE', KEYS[1], ARGV[13])
  redis.call('PEXPIRE', KEYS[2], ARGV[13])
end
return {'moved', nextRevision, now}
`;

/**
 * Takes requests whose messages are due, for one deliverer at a time: each is out of sight for a while and comes back
 * by itself when the deliverer dies.
 *
 * KEYS outbox   ARGV most, out of sight for (ms) → ids
 */
export const takeDue = `${now}
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
for _, id in ipairs(ids) do redis.call('ZADD', KEYS[1], now + ARGV[2], id) end
return ids
`;

/**
 * KEYS outbox, request   ARGV id, revision whose messages were all delivered
 * Done when nothing moved meanwhile, else due again at once.
 */
export const delivered = `${now}
if redis.call('HGET', KEYS[2], 'revision') == ARGV[2] or redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('ZREM', KEYS[1], ARGV[1])
  return 1
end
redis.call('ZADD', KEYS[1], now, ARGV[1])
return 0
`;

/** KEYS outbox   ARGV id, due in (ms) */
export const deliverLater = `${now}
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
return 1
`;

/** KEYS request   ARGV field, its value as it was read ('' for none), new value → 1, or 0 when it is another by now */
export const markDelivered = `
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
`;
