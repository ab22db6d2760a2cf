import { randomUUID } from "node:crypto";
import { type Keys, defineScript, type RedisClient } from "./redis.ts";

/** KEYS lease   ARGV holder, ms → 1 when it was still this holder's */
const extend = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`;

/** KEYS lease   ARGV holder → 1 when it was still this holder's */
const release = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`;

/**
 * A key with its holder's name, until it expires. Advisory: a process that was paused may have lost it without knowing, so
 * the write itself must refuse what must not happen twice.
 */
export function createLeases(redis: RedisClient) {
  const runExtend = defineScript(redis, "gatehouseExtendLease", extend);
  const runRelease = defineScript(redis, "gatehouseReleaseLease", release);
  return {
    /** False while it is held, also by this holder. */
    take: async (lease: string, holder: string, ms: number): Promise<boolean> =>
      (await redis.set(lease, holder, "PX", ms, "NX")) !== null,
    /** False when it is no longer this holder's. */
    extend: async (lease: string, holder: string, ms: number): Promise<boolean> =>
      (await runExtend([lease], [holder, ms])) === 1,
    /** False when it is no longer this holder's; then it stays. */
    release: async (lease: string, holder: string): Promise<boolean> =>
      (await runRelease([lease], [holder])) === 1,
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
  return (await redis.set(key("turn", what), randomUUID(), "PX", ms, "NX")) !== null;
}
