import { defineScript, type Keys, type RedisClient } from "../redis.ts";

/** KEYS version, audit   ARGV the version that this process has → 1 when it was another one before */
const script = `
local before = redis.call('GET', KEYS[1])
if before == ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
if not before then return 0 end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local record = cjson.encode({ what = 'policy', who = 'Gatehouse', from = before, to = ARGV[1] })
redis.call('XADD', KEYS[2], '*', 'at', string.format('%d', now), 'record', record)
return 1
`;

/** A process starts with another policy than the last one had: that stands in the trail, once for all that start with it. */
export async function notePolicy(redis: RedisClient, key: Keys, version: string): Promise<boolean> {
  const run = defineScript(redis, "gatehouseNotePolicy", script);
  return (await run([key("policy", "version"), key("audit")], [version])) === 1;
}
