/**
 * All keys share one hash tag, so each script may run on a Cluster. Times are Redis' own, in milliseconds.
 *
 * - `seen:<ask id>`  who took this delivery (the gateway and its count); expires after ten minutes
 * - `records`        hash, ask id → what has to be handled
 * - `holders`        hash, ask id → "gateway|taken at|times taken over"
 * - `gateways`       sorted set, gateway → last sign of life
 */

const now = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

/** KEYS seen records holders gateways; ARGV stamp ttl id record gateway most. Gives new, seen or full. */
export const accept = `${now}
if redis.call('EXISTS', KEYS[1]) == 1 then return 'seen' end
if ARGV[4] ~= '' then
  if redis.call('HLEN', KEYS[2]) >= tonumber(ARGV[6]) then return 'full' end
  redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
  redis.call('HSET', KEYS[3], ARGV[3], ARGV[5] .. '|' .. now .. '|0')
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('ZADD', KEYS[4], now, ARGV[5])
return 'new'`;

/** KEYS records holders; ARGV gateway, then ids. Only what this gateway still holds is finished. */
export const finish = `
for i = 2, #ARGV do
  local holder = redis.call('HGET', KEYS[2], ARGV[i])
  if holder and string.sub(holder, 1, #ARGV[1] + 1) == ARGV[1] .. '|' then
    redis.call('HDEL', KEYS[1], ARGV[i])
    redis.call('HDEL', KEYS[2], ARGV[i])
  end
end
return 'ok'`;

/** KEYS seen records holders; ARGV stamp id. Undoes an accept, unless somebody else's. */
export const disown = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
  redis.call('HDEL', KEYS[2], ARGV[2])
  redis.call('HDEL', KEYS[3], ARGV[2])
end
return 'ok'`;

/** KEYS gateways; ARGV gateway, how long a silent gateway is remembered. */
export const beat = `${now}
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
return now`;

/**
 * KEYS records holders gateways; ARGV gateway, silent for, most, most takeovers, oldest age, then what it has in hand.
 * Takes over what gateways left that have been silent for long enough, and what stands in this gateway's own name although
 * it has it in hand no more: Redis forgot that it was finished. Too old or taken over too often: removed.
 * Gives { taken over, dropped }, the records themselves.
 */
export const recover = `${now}
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
