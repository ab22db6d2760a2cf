import { defineScript, type Keys, type RedisClient } from "../redis.ts";
import { redisNow } from "./redis-now.ts";
import * as scripts from "./scripts.ts";

const atOnce = 20;

/** Requests that were sent a second time: their first call, which was given up, may still take effect. */
export function createLates(redis: RedisClient, key: Keys) {
  const runTakeDue = defineScript(redis, "gatehouseTakeLates", scripts.takeDue);
  return {
    async expectLate(id: string): Promise<void> {
      await redis.zadd(key("lates"), await redisNow(redis), id);
    },
    /** Whose targets are to be looked at, out of sight of other workers for `hiddenMs`. */
    takeLates: async (hiddenMs: number): Promise<string[]> =>
      (await runTakeDue([key("lates")], [atOnce, hiddenMs])) as string[],
    async lateOver(id: string): Promise<void> {
      await redis.zrem(key("lates"), id);
    },
  };
}
