/**
 * One vote, in one step that nothing can come between (reliability.md section 4). Deny wins until the claim; whoever
 * asked never counts; one vote per person; time is Redis time.
 *
 * KEYS request, history, audit, outbox, open, lock
 * ARGV id, first digits of the digest the voter saw, voter, vote (approve|deny), vote record, audit record,
 *      history entry when decided, how long a final request is kept (ms)
 * → {'counted', n} | {'authorized', n} | {'denied'} | {'refused', why}
 */
export const vote = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local r = redis.call('HMGET', KEYS[1], 'state', 'digest', 'expiresAt', 'requester', 'required')
if not r[1] or not r[2] or string.len(ARGV[2]) ~= 16 then return {'refused', 'unknown'} end
if string.sub(r[2], 1, string.len(ARGV[2])) ~= ARGV[2] then return {'refused', 'unknown'} end
if r[4] == ARGV[3] then return {'refused', 'own'} end
local pending = r[1] == 'draft'
if not pending and not (r[1] == 'authorized' and ARGV[4] == 'deny') then return {'refused', 'over'} end
if pending and tonumber(r[3]) <= now then return {'refused', 'expired'} end
local field = 'vote:' .. ARGV[3]
local before = redis.call('HGET', KEYS[1], field)
if before then
  if ARGV[4] == 'approve' or string.find(before, '"vote":"deny"', 1, true) then return {'refused', 'twice'} end
end
local record = string.gsub(ARGV[5], '__AT__', string.format('%d', now))
redis.call('HSET', KEYS[1], field, record)
redis.call('XADD', KEYS[3], '*', 'at', now, 'record', ARGV[6])
redis.call('HINCRBY', KEYS[1], 'revision', 1)
redis.call('ZADD', KEYS[4], 'NX', now, ARGV[1])
if ARGV[4] == 'deny' then
  redis.call('HSET', KEYS[1], 'state', 'denied', 'final', '1', 'changedAt', now)
  redis.call('RPUSH', KEYS[2], now .. ' ' .. ARGV[7])
  redis.call('ZREM', KEYS[5], ARGV[1])
  if redis.call('GET', KEYS[6]) == ARGV[1] then redis.call('DEL', KEYS[6]) end
  redis.call('PEXPIRE', KEYS[1], ARGV[8])
  redis.call('PEXPIRE', KEYS[2], ARGV[8])
  return {'denied'}
end
local approvals = 0
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if string.sub(all[i], 1, 5) == 'vote:' and string.find(all[i + 1], '"vote":"approve"', 1, true) then approvals = approvals + 1 end
end
if approvals < tonumber(r[5]) then return {'counted', approvals} end
redis.call('HSET', KEYS[1], 'state', 'authorized', 'changedAt', now)
redis.call('RPUSH', KEYS[2], now .. ' ' .. ARGV[7])
return {'authorized', approvals}
`;
