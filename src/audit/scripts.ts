import { redisTimeLua } from "../redis/redis.ts";

/**
 * The sealer's Lua. A seal's stream ID is `seq-0`, so Redis itself refuses a second seal with the same number, also
 * after a truncation.
 */

/**
 * Takes or keeps the lease and reads what to seal next; without the lease, only the oldest record.
 *
 * KEYS lease, seals, records   ARGV token, lease (ms), most
 * → {'mine' | 'busy', now, last seal or {}, records}
 */
export const begin = `${redisTimeLua}
local holder = redis.call('GET', KEYS[1])
local mine = not holder or holder == ARGV[1]
if mine then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)
local from = '-'
if last[1] then
  local fields = last[1][2]
  for i = 1, #fields, 2 do if fields[i] == 'id' then from = '(' .. fields[i + 1] end end
end
local records = redis.call('XRANGE', KEYS[3], from, '+', 'COUNT', mine and ARGV[3] or 1)
return {mine and 'mine' or 'busy', now, last[1] or {}, records}
`;

/**
 * Appends seals to the head they were computed on. The chain can't fork: of two sealers that saw the same head, the
 * second finds another one, with or without the lease.
 *
 * KEYS lease, seals, ...buckets of salts
 * ARGV token, lease (ms), hash of the head or '', then per seal: seq, id, at, payload, hash, salt, index of its bucket
 * → {'sealed' | 'lost' (another process seals) | 'cut' (higher numbers were given before: the last seals are missing), now}
 */
export const seal = `${redisTimeLua}
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return {'lost', now} end
local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)
local hash = ''
if last[1] then
  local fields = last[1][2]
  for i = 1, #fields, 2 do if fields[i] == 'hash' then hash = fields[i + 1] end end
end
if hash ~= ARGV[3] then return {'lost', now} end
for i = 4, #ARGV, 7 do
  local ok = redis.pcall('XADD', KEYS[2], ARGV[i] .. '-0', 'id', ARGV[i + 1], 'at', ARGV[i + 2], 'payload', ARGV[i + 3], 'hash', ARGV[i + 4])
  if type(ok) == 'table' and ok.err then
    if string.find(ok.err, 'equal or smaller', 1, true) then return {'cut', now} end
    return ok
  end
  redis.call('HSET', KEYS[2 + tonumber(ARGV[i + 6])], ARGV[i], ARGV[i + 5])
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {'sealed', now}
`;

/** KEYS records   ARGV record → its id */
export const append = `${redisTimeLua}
return redis.call('XADD', KEYS[1], '*', 'at', now, 'record', ARGV[1])
`;

/** Appends once per name. KEYS records, said   ARGV name, record → 1 | 0 */
export const appendOnce = `${redisTimeLua}
if redis.call('HSETNX', KEYS[2], ARGV[1], now) == 0 then return 0 end
redis.call('XADD', KEYS[1], '*', 'at', now, 'record', ARGV[2])
return 1
`;

/**
 * Erases records and their salts and records it, in one step.
 *
 * KEYS records, rewriting, ...bucket of each   ARGV token, marker record, then per record: id, seq
 * → 'erased' | 'lost' (another process rewrites)
 */
export const erase = `${redisTimeLua}
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 'lost' end
for i = 3, #ARGV, 2 do
  redis.call('XDEL', KEYS[1], ARGV[i])
  redis.call('HDEL', KEYS[2 + (i - 1) / 2], ARGV[i + 1])
end
redis.call('XADD', KEYS[1], '*', 'at', now, 'record', ARGV[2])
return 'erased'
`;

/**
 * Copies the next records into a new stream; after the last ones, renames it over the old one.
 *
 * KEYS records, rewriting, copy   ARGV token, last id copied or '', most, lease (ms)
 * → {'more', last id} | {'done'} | {'lost'}
 */
export const rewrite = `
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return {'lost'} end
redis.call('PEXPIRE', KEYS[2], ARGV[4])
local from = ARGV[2] == '' and '-' or '(' .. ARGV[2]
local page = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', ARGV[3])
local last = ARGV[2]
for _, entry in ipairs(page) do
  redis.call('XADD', KEYS[3], entry[1], unpack(entry[2]))
  last = entry[1]
end
redis.call('PEXPIRE', KEYS[3], ARGV[4])
if #page == tonumber(ARGV[3]) then return {'more', last} end
if redis.call('EXISTS', KEYS[3]) == 0 then return {'done'} end
redis.call('PERSIST', KEYS[3])
local info = redis.call('XINFO', 'STREAM', KEYS[1])
for i = 1, #info, 2 do
  if info[i] == 'last-generated-id' then redis.call('XSETID', KEYS[3], info[i + 1]) end
end
redis.call('RENAME', KEYS[3], KEYS[1])
return {'done'}
`;
