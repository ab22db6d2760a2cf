import { redisTimeLua } from "../redis/redis.ts";

/**
 * Combines what all processes saw, under Redis time, so that an outage opens once and closes once.
 *
 * - `watch`    hash: `<part>:since`, `<part>:last`, `<part>:answered`, `<part>:open`, and `last`, the outage closed last
 * - `records`  hash, id → an outage that is over, recap pending
 * - `due`      sorted set, id → when it is taken next
 * - `failing`  set of the parts with failures on record: while there is none, answers mean nothing
 */

const begin = `${redisTimeLua}
local function whole(n) return string.format('%.0f', n) end
local function close(id, part, since, till, quiet)
  local record = '{"id":"' .. id .. '","part":"' .. part .. '","since":' .. whole(since) .. ',"until":' .. whole(till) .. '}'
  redis.call('HSET', KEYS[2], id, record)
  redis.call('HSET', KEYS[1], 'last', record)
  redis.call('ZADD', KEYS[3], now + quiet, id)
end
`;

/**
 * Takes what one process saw since its last report. Failures open an outage after long enough without an answer in any
 * process; an answer closes it after a quiet time without a failure.
 *
 * KEYS watch, records, due, failing   ARGV long enough (ms), quiet for (ms), longest between two failures that belong together (ms),
 *      then for each part: its name, how long ago a call failed ('' when none did), how long ago one was answered
 * → 1 when recaps are pending, due or not
 */
export const report = `${begin}
local enough, quiet, gap = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
for i = 4, #ARGV, 3 do
  local part = ARGV[i]
  local field = function(name) return part .. ':' .. name end
  local failed = tonumber(ARGV[i + 1]) and now - tonumber(ARGV[i + 1])
  local answered = tonumber(ARGV[i + 2]) and now - tonumber(ARGV[i + 2])
  local got = redis.call('HMGET', KEYS[1], field('since'), field('last'), field('answered'), field('open'))
  local since, last, ok, open = tonumber(got[1]), tonumber(got[2]), tonumber(got[3]), got[4]
  if failed then
    if since and not open then
      -- Of a report with both, the answer may lie between what failed before and this failure
      local wasAnswered = answered and answered >= last and answered < failed
      if wasAnswered or failed - last > gap then since = nil end
    end
    if not since then since, last, ok = failed, failed, nil end
    if failed > last then last = failed end
  end
  local over = not since
  if since then
    if ok and ok < last then ok = nil end
    if answered and answered >= last and not ok then ok = answered end
    if not open and not ok and last - since >= enough then open = part .. '-' .. whole(since) end
    over = ok and (not open or now - last >= quiet)
    if over then
      redis.call('HDEL', KEYS[1], field('since'), field('last'), field('answered'), field('open'))
      if open then close(open, part, since, ok, quiet) end
    else
      redis.call('HSET', KEYS[1], field('since'), whole(since), field('last'), whole(last))
      if ok then redis.call('HSET', KEYS[1], field('answered'), whole(ok)) else redis.call('HDEL', KEYS[1], field('answered')) end
      if open then redis.call('HSET', KEYS[1], field('open'), open) end
    end
  end
  redis.call(over and 'SREM' or 'SADD', KEYS[4], part)
end
return redis.call('EXISTS', KEYS[3])
`;

/**
 * Redis was unavailable to a process that reaches it again. Overlapping reports are one outage until its recap.
 *
 * KEYS watch, records, due   ARGV since when (ms ago), until when at least (ms ago), long enough (ms), quiet for (ms), prefix of the
 *      key for what was refused, how long that is kept (ms), then id and record of each refused interaction
 * → the outage's id, '' when it was too short
 */
export const cameBack = `${begin}
local since, last = now - tonumber(ARGV[1]), now - tonumber(ARGV[2])
local got = redis.call('HMGET', KEYS[1], 'redis:id', 'redis:since', 'redis:until')
local id = got[1]
if id and redis.call('HEXISTS', KEYS[2], id) == 1 and since <= tonumber(got[3]) then
  since = math.min(since, tonumber(got[2]))
elseif last - since >= tonumber(ARGV[3]) then
  id = 'redis-' .. whole(since)
else
  return ''
end
redis.call('HSET', KEYS[1], 'redis:id', id, 'redis:since', whole(since), 'redis:until', whole(now))
close(id, 'redis', since, now, tonumber(ARGV[4]))
for i = 7, #ARGV, 2 do redis.call('HSET', ARGV[5] .. id, ARGV[i], ARGV[i + 1]) end
if #ARGV >= 7 then redis.call('PEXPIRE', ARGV[5] .. id, ARGV[6]) end
return id
`;
