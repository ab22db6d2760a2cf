/** The Lua of rolls, in the manner of the journal's (`requests/scripts.ts`): time is Redis time, values are opaque. */

const now = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
`;

/** KEYS roll   ARGV record, targets, progress, how long a plan is kept (ms) */
export const plan = `${now}
redis.call('HSET', KEYS[1], 'record', ARGV[1], 'targets', ARGV[2], 'state', 'planned', 'final', '0', 'revision', '1',
  'progress', ARGV[3], 'createdAt', now, 'changedAt', now, 'seenAt', now)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
`;

/**
 * Moves a roll, or notes progress. Refuses when it changed since it was read.
 *
 * KEYS roll, outcomes, open, audit, outbox
 * ARGV id, revision it was read at, state, final (0|1), progress, audit record ('' for none), record ('' to keep it),
 *      tell ('' | 'soon' | 'now'), how long a final roll is kept (ms), ...place and outcome of targets that ended
 * → {'moved', revision, now} | {'changed'}
 */
export const move = `${now}
if redis.call('HGET', KEYS[1], 'revision') ~= ARGV[2] then return {'changed'} end
local revision = redis.call('HINCRBY', KEYS[1], 'revision', 1)
local was = redis.call('HGET', KEYS[1], 'state')
redis.call('HSET', KEYS[1], 'state', ARGV[3], 'final', ARGV[4], 'progress', ARGV[5], 'seenAt', now)
if was ~= ARGV[3] then redis.call('HSET', KEYS[1], 'changedAt', now) end
if ARGV[6] ~= '' then redis.call('XADD', KEYS[4], '*', 'at', now, 'record', ARGV[6]) end
if ARGV[7] ~= '' then redis.call('HSET', KEYS[1], 'record', ARGV[7]) end
for i = 10, #ARGV, 2 do redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1]) end
if was == 'planned' then
  redis.call('PERSIST', KEYS[1])
  redis.call('ZADD', KEYS[3], now, ARGV[1])
end
if ARGV[8] == 'soon' then redis.call('ZADD', KEYS[5], 'NX', now, ARGV[1]) end
if ARGV[8] == 'now' then redis.call('ZADD', KEYS[5], now, ARGV[1]) end
if ARGV[4] == '1' then
  redis.call('ZREM', KEYS[3], ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[9])
  redis.call('PEXPIRE', KEYS[2], ARGV[9])
end
return {'moved', revision, now}
`;

/**
 * KEYS outbox, roll   ARGV id, revision and state that were told, how long until the next edit (ms)
 * Nothing more is due unless it moved meanwhile; another state is told at once.
 */
export const told = `${now}
local is = redis.call('HMGET', KEYS[2], 'revision', 'state')
if not is[1] or is[1] == ARGV[2] then
  redis.call('ZREM', KEYS[1], ARGV[1])
  return 1
end
if is[2] ~= ARGV[3] then redis.call('ZADD', KEYS[1], now, ARGV[1])
else redis.call('ZADD', KEYS[1], now + ARGV[4], ARGV[1]) end
return 0
`;

/** KEYS lease   ARGV holder: gives back what is still one's own */
export const release = `
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
`;
