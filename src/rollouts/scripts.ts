import { redisTimeLua } from "../redis/redis.ts";

/** KEYS rollout   ARGV record, targets, progress, how long a plan is kept (ms) */
export const plan = `${redisTimeLua}
redis.call('HSET', KEYS[1], 'record', ARGV[1], 'targets', ARGV[2], 'state', 'planned', 'final', '0', 'revision', '1',
  'progress', ARGV[3], 'createdAt', now, 'changedAt', now, 'seenAt', now)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
`;

/**
 * Moves a rollout, or saves progress. Refuses when it changed since it was read.
 *
 * KEYS rollout, outcomes, open, audit, outbox
 * ARGV id, revision it was read at, state, final (0|1), progress, audit record ('' for none), record ('' to keep it),
 *      tell ('' | 'soon' | 'now'), how long a final rollout is kept (ms), ...place and outcome of targets that ended
 * → {'moved', revision, now} | {'changed'}
 */
export const move = `${redisTimeLua}
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
