import { defineScript, type Keys, type RedisClient, redisTimeLua } from "../redis/redis.ts";

/**
 * The policy of the process that started last is the current one. Each adoption gets the next number, also of a policy that
 * comes back.
 *
 * KEYS version, audit, order   ARGV this process's version → 1 when the last one differed
 */
const script = `
local before = redis.call('GET', KEYS[1])
if before and redis.call('EXISTS', KEYS[3]) == 0 then redis.call('ZADD', KEYS[3], 1, before) end
if before == ARGV[1] then return 0 end
local last = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2] or 0
redis.call('ZADD', KEYS[3], last + 1, ARGV[1])
redis.call('SET', KEYS[1], ARGV[1])
if not before then return 0 end
${redisTimeLua}
local record = cjson.encode({ what = 'policy', who = 'Gatehouse', from = before, to = ARGV[1] })
redis.call('XADD', KEYS[2], '*', 'at', string.format('%d', now), 'record', record)
return 1
`;

/** Makes this policy the current one, and records once that it changed. */
export async function notePolicy(redis: RedisClient, key: Keys, version: string): Promise<boolean> {
  const run = defineScript(redis, "gatehouseNotePolicy", script);
  const keys = [key("policy", "version"), key("audit"), key("policy", "order")];
  return (await run(keys, [version])) === 1;
}

/** Whether `version` is known to have been adopted before `ours`: in a rolling change, others may be ahead of this process. */
export async function isOlderPolicy(
  redis: RedisClient,
  key: Keys,
  version: string,
  ours: string,
): Promise<boolean> {
  const [theirs, own] = await redis.zmscore(key("policy", "order"), version, ours);
  return theirs != null && own != null && Number(theirs) < Number(own);
}
