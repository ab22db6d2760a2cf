import { redisTimeLua } from "../../redis/redis.ts";

/**
 * All keys share one hash tag, so each script may run on a Cluster. Times are Redis time (ms).
 *
 * - `seen:<id>`  who accepted this delivery (gateway/count); expires after 11 minutes
 * - `records`    hash, id → the interaction to handle
 * - `holders`    hash, id → "gateway|accepted at|times taken over"
 * - `undone:<stamp>`  this accept was undone, even if it comes later than that
 * - `gateways`   sorted set, gateway → last heartbeat
 */

/** KEYS seen records holders gateways undone; ARGV stamp, ttl, id, record, gateway, max pending → new, seen, full or late */
export const accept = `${redisTimeLua}
if redis.call('EXISTS', KEYS[5]) == 1 then return 'late' end
if redis.call('EXISTS', KEYS[1]) == 1 then return 'seen' end
if ARGV[4] ~= '' then
  if redis.call('HLEN', KEYS[2]) >= tonumber(ARGV[6]) then return 'full' end
  redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
  redis.call('HSET', KEYS[3], ARGV[3], ARGV[5] .. '|' .. now .. '|0')
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('ZADD', KEYS[4], now, ARGV[5])
return 'new'`;

/** KEYS records holders; ARGV gateway, then ids. Removes those that this gateway still holds. */
export const finish = `
for i = 2, #ARGV do
  local holder = redis.call('HGET', KEYS[2], ARGV[i])
  if holder and string.sub(holder, 1, #ARGV[1] + 1) == ARGV[1] .. '|' then
    redis.call('HDEL', KEYS[1], ARGV[i])
    redis.call('HDEL', KEYS[2], ARGV[i])
  end
end
return 'ok'`;

/** KEYS seen records holders undone; ARGV stamp id, how long it stays undone (ms). Undoes this accept, never another's. */
export const disown = `
redis.call('SET', KEYS[4], 1, 'PX', ARGV[3])
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
  redis.call('HDEL', KEYS[2], ARGV[2])
  redis.call('HDEL', KEYS[3], ARGV[2])
end
return 'ok'`;

/** KEYS gateways; ARGV gateway, how long a silent gateway is kept (ms). */
export const beat = `${redisTimeLua}
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
return now`;

/**
 * KEYS records holders gateways; ARGV gateway, silent for, max at once, max takeovers, max age, then ids in hand.
 * Takes over from gateways without a heartbeat, and what this gateway holds in Redis but no longer has in hand (Redis lost
 * the finish). Drops what is too old or was taken over too often. → { taken over, dropped }, both as records
 */
export const recover = `${redisTimeLua}
local taken, dropped = {}, {}
local inHand = {}
for i = 6, #ARGV do inHand[ARGV[i]] = true end
local holders = redis.call('HGETALL', KEYS[2])
for i = 1, #holders, 2 do
  if #taken >= tonumber(ARGV[3]) then break end
  local id, holder = holders[i], holders[i + 1]
  local who, at, times = string.match(holder, '^(.*)|(%d+)|(%d+)$')
  local life = who and redis.call('ZSCORE', KEYS[3], who)
  local isOwn = who == ARGV[1]
  local silent = now - ((life and not isOwn) and tonumber(life) or tonumber(at or 0))
  if not (isOwn and inHand[id]) and silent > tonumber(ARGV[2]) then
    local record = redis.call('HGET', KEYS[1], id)
    if record and tonumber(times) < tonumber(ARGV[4]) and now - tonumber(at) < tonumber(ARGV[5]) then
      redis.call('HSET', KEYS[2], id, ARGV[1] .. '|' .. at .. '|' .. (tonumber(times) + 1))
      table.insert(taken, record)
    else
      redis.call('HDEL', KEYS[1], id)
      redis.call('HDEL', KEYS[2], id)
      if record then table.insert(dropped, record) end
    end
  end
end
if #taken > 0 then redis.call('ZADD', KEYS[3], now, ARGV[1]) end
return { taken, dropped }`;
