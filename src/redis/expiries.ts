import { type Keys, type RedisClient, defineScript } from "./redis.ts";
import { scanKeys } from "./scan-keys.ts";

/** KEYS some keys   ARGV by how much Redis's clock was set back (ms) */
const bringForwardScript = `
for _, name in ipairs(KEYS) do
  local left = redis.call('PTTL', name)
  if left > tonumber(ARGV[1]) then redis.call('PEXPIRE', name, string.format('%d', left - ARGV[1])) end
end
`;

/**
 * Creates the function that lets keys expire when they should have, after Redis's clock was set back (ms). A key of the
 * former clock would last that much longer: a lease that nobody holds, or BullMQ's mark that stalled jobs were just
 * looked for, without which the jobs of dead workers stay theirs. Such a key has more time left than the clock was set
 * back by; what else has so much is kept for days, and may go a little sooner.
 */
export function createBringForward(redis: RedisClient, key: Keys) {
  const run = defineScript(redis, "gatehouseBringForward", bringForwardScript);
  return async (setBackMs: number): Promise<void> => {
    for await (const names of scanKeys(redis, key)) await run(names, [setBackMs]);
  };
}
