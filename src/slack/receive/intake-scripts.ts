import { redisTimeLua } from "../../redis/redis.ts";

/**
 * All keys share one hash tag, so each script may run on a Cluster. Times are Redis time (ms).
 *
 * - `arrived`    hash, id → "stamp|accepted at|interaction": what is acked, until its claim
 * - `seen:<id>`  who claimed this delivery (its stamp: gateway/count); expires after 11 minutes
 * - `records`    hash, id → the interaction to handle
 * - `holders`    hash, id → "gateway|accepted at|times taken over"
 * - `undone:<stamp>`  this accept was undone, even if it comes later than that
 * - `gateways`   sorted set, gateway → last heartbeat
 *
 * What an ack waits for is no script but one HSETNX on `arrived`: of the time in Redis a script takes most by itself.
 */

/**
 * KEYS arrived records holders, then of each its seen and undone; ARGV ttl, max pending, then of each its stamp, its id, and 1 where
 * it has arrived. Whoever claims: it is held by the gateway that accepted it. Asked again it answers the same.
 * → for each: new, seen, full, late, gone (taken over meanwhile), or lost (Redis has neither it nor a claim)
 */
export const claim = `
local ttl, most = ARGV[1], tonumber(ARGV[2])
local answers = {}
for i = 0, (#ARGV - 2) / 3 - 1 do
  local seen, undone = KEYS[4 + 2 * i], KEYS[5 + 2 * i]
  local stamp, id, hasArrived = ARGV[3 + 3 * i], ARGV[4 + 3 * i], ARGV[5 + 3 * i] == '1'
  local holder = string.match(stamp, '^(.*)/') .. '|'
  local at, record
  local got = hasArrived and redis.call('HGET', KEYS[1], id)
  if got then
    if string.sub(got, 1, #stamp + 1) == stamp .. '|' then
      at, record = string.match(string.sub(got, #stamp + 2), '^(%d+)|(.*)$')
      redis.call('HDEL', KEYS[1], id)
    end
  end
  local was = redis.call('GET', seen)
  local answer = 'new'
  if redis.call('EXISTS', undone) == 1 then
    answer = 'late'
  elseif hasArrived and not record then
    local held = was == stamp and redis.call('HGET', KEYS[3], id)
    if not was and not got then
      answer = 'lost'
    elseif not held or string.sub(held, 1, #holder) ~= holder then answer = 'gone' end
  elseif was then
    answer = 'seen'
  elseif record and redis.call('HLEN', KEYS[2]) >= most then
    answer = 'full'
  else
    if record then
      redis.call('HSET', KEYS[2], id, record)
      redis.call('HSET', KEYS[3], id, holder .. at .. '|0')
    end
    redis.call('SET', seen, stamp, 'PX', ttl)
  end
  answers[i + 1] = answer
end
return answers`;

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

/** KEYS seen records holders undone arrived; ARGV stamp id, how long it stays undone (ms). Undoes this accept, never another's. */
export const disown = `
redis.call('SET', KEYS[4], 1, 'PX', ARGV[3])
local got = redis.call('HGET', KEYS[5], ARGV[2])
if got and string.sub(got, 1, #ARGV[1] + 1) == ARGV[1] .. '|' then redis.call('HDEL', KEYS[5], ARGV[2]) end
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
 * KEYS records holders gateways arrived; ARGV gateway, silent for, max at once, max takeovers, max age, then ids in hand.
 * Takes over from gateways without a heartbeat, and what this gateway holds in Redis but no longer has in hand (Redis lost
 * the finish). Drops what is too old or was taken over too often. → { taken over, dropped }, both as records, and what nobody
 * claimed: id and stamp of each
 */
export const recover = `${redisTimeLua}
local taken, dropped = {}, {}
local inHand = {}
for i = 6, #ARGV do inHand[ARGV[i]] = true end
local function isLeft(id, who, at)
  local life = who and redis.call('ZSCORE', KEYS[3], who)
  local isOwn = who == ARGV[1]
  local silent = now - ((life and not isOwn) and tonumber(life) or tonumber(at or 0))
  return not (isOwn and inHand[id]) and silent > tonumber(ARGV[2])
end
local unclaimed = {}
local arrived = redis.call('HGETALL', KEYS[4])
for i = 1, #arrived, 2 do
  if #unclaimed >= 2 * tonumber(ARGV[3]) then break end
  local stamp, at = string.match(arrived[i + 1], '^([^|]*)|(%d+)|')
  local who = string.match(stamp or '', '^(.*)/')
  if not who then
    redis.call('HDEL', KEYS[4], arrived[i])
  elseif isLeft(arrived[i], who, at) then
    table.insert(unclaimed, arrived[i])
    table.insert(unclaimed, stamp)
  end
end
local holders = redis.call('HGETALL', KEYS[2])
for i = 1, #holders, 2 do
  if #taken >= tonumber(ARGV[3]) then break end
  local id, holder = holders[i], holders[i + 1]
  local who, at, times = string.match(holder, '^(.*)|(%d+)|(%d+)$')
  if isLeft(id, who, at) then
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
return { taken, dropped, unclaimed }`;
