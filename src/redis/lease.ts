import { type Keys, defineScript, type RedisClient } from "./redis.ts";

/** KEYS lease   ARGV holder, ms from now (0: it ends) → 1 when it was still this holder's */
const hold = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`;

/**
 * A key with its holder's name, until it expires. Advisory: a process that was paused may have lost it without knowing, so
 * the write itself must refuse what must not happen twice.
 */
export function createLeases(redis: RedisClient) {
  const runHold = defineScript(redis, "gatehouseHoldLease", hold);
  return {
    /** False while it is held, also by this holder. */
    take: async (lease: string, holder: string, ms: number): Promise<boolean> =>
      (await redis.set(lease, holder, "PX", ms, "NX")) !== null,
    /** False when it is no longer this holder's. */
    extend: async (lease: string, holder: string, ms: number): Promise<boolean> =>
      (await runHold([lease], [holder, ms])) === 1,
    /** False when it is no longer this holder's; then it stays. */
    release: async (lease: string, holder: string): Promise<boolean> =>
      (await runHold([lease], [holder, 0])) === 1,
  };
}

/** True in one process per interval; if that process dies, another does the next interval. */
export async function takeTurn(
  redis: RedisClient,
  key: Keys,
  what: string,
  everyMs: number,
): Promise<boolean> {
  const ms = Math.max(1, Math.round(everyMs * 0.7));
  return (await redis.set(key("turn", what), "taken", "PX", ms, "NX")) !== null;
}
