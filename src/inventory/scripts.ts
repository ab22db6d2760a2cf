/**
 * The inventory's Lua. One hash tag, so each script sees one slot. A project's version is its score in `changes`; the
 * head's version is the highest given so far. The epoch names this set of data: another one means that Redis was emptied.
 */

/**
 * Stores one project, or removes it when its JSON is empty, unless someone else did since `expected`.
 *
 * KEYS head, projects, vms, changes, gone, lease
 * ARGV projectId, expected version (0: not there), project JSON, vms JSON, an epoch to use if there is none,
 *      lease token that must still be held ('' for none), how many removed ones to remember
 * → {new version, epoch}; the version is -1 when it changed, -2 when the lease is lost
 */
export const put = `
if ARGV[6] ~= '' and redis.call('GET', KEYS[6]) ~= ARGV[6] then return {-2, ''} end
local id = ARGV[1]
local at = tonumber(redis.call('ZSCORE', KEYS[4], id) or '0')
if at ~= tonumber(ARGV[2]) then return {-1, ''} end
redis.call('HSETNX', KEYS[1], 'epoch', ARGV[5])
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if ARGV[3] == '' and at == 0 then return {0, epoch} end
local version = redis.call('HINCRBY', KEYS[1], 'version', 1)
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[2], id, ARGV[3])
  redis.call('HSET', KEYS[3], id, ARGV[4])
  redis.call('ZADD', KEYS[4], version, id)
  redis.call('ZREM', KEYS[5], id)
  return {version, epoch}
end
redis.call('HDEL', KEYS[2], id)
redis.call('HDEL', KEYS[3], id)
redis.call('ZREM', KEYS[4], id)
redis.call('ZADD', KEYS[5], version, id)
local over = redis.call('ZCARD', KEYS[5]) - tonumber(ARGV[7])
if over > 0 then
  local oldest = redis.call('ZPOPMIN', KEYS[5], over)
  redis.call('HSET', KEYS[1], 'floor', oldest[#oldest])
end
return {version, epoch}
`;

/**
 * What changed since a version that this reader has seen of this epoch. All of it when that can't be told.
 *
 * KEYS head, changes, gone
 * ARGV version, epoch
 * → {epoch|nil, version, refreshedAt, failed, unread, full (0|1), {id, version, …}, {ids gone}}
 */
export const changesSince = `
local head = redis.call('HMGET', KEYS[1], 'epoch', 'version', 'floor', 'refreshedAt', 'failed', 'unread')
local version = head[2] or '0'
if not head[1] then return {'', '0', '', '', '', 0, {}, {}} end
local since = tonumber(ARGV[1])
local full = head[1] ~= ARGV[2] or since > tonumber(version) or since < tonumber(head[3] or '0')
local from = full and '-inf' or '(' .. ARGV[1]
local changed = redis.call('ZRANGEBYSCORE', KEYS[2], from, '+inf', 'WITHSCORES')
local gone = full and {} or redis.call('ZRANGEBYSCORE', KEYS[3], from, '+inf')
return {head[1], version, head[4] or '', head[5] or '', head[6] or '', full and 1 or 0, changed, gone}
`;

/**
 * KEYS projects, vms, changes
 * ARGV ids
 * → for each id: version ('' when it isn't there), project JSON, vms JSON
 */
export const read = `
local rows = {}
for _, id in ipairs(ARGV) do
  local version = redis.call('ZSCORE', KEYS[3], id)
  rows[#rows + 1] = version or ''
  rows[#rows + 1] = version and redis.call('HGET', KEYS[1], id) or ''
  rows[#rows + 1] = version and redis.call('HGET', KEYS[2], id) or ''
end
return rows
`;

/**
 * Takes the lease to refresh. `recent` is there for a while after each refresh: whoever only refreshes on time skips then.
 *
 * KEYS lease, recent
 * ARGV token, how long (ms), even if there was a refresh just now (0|1)
 * → 1 when taken
 */
export const claim = `
if ARGV[3] == '0' and redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
return 0
`;

/**
 * Gives the lease back, and writes how the refresh ended unless `failed` is empty.
 *
 * KEYS lease, recent, head
 * ARGV token, failed ('1', '0', or '' when given up without a verdict), refreshedAt (ms), unread names (JSON),
 *      how long it counts as recent (ms), an epoch to use if there is none
 * → 1 when it was ours
 */
export const release = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
if ARGV[2] == '' then return 1 end
redis.call('SET', KEYS[2], '1', 'PX', ARGV[5])
redis.call('HSETNX', KEYS[3], 'epoch', ARGV[6])
redis.call('HSET', KEYS[3], 'failed', ARGV[2])
if ARGV[2] == '0' then redis.call('HSET', KEYS[3], 'refreshedAt', ARGV[3], 'unread', ARGV[4]) end
return 1
`;
