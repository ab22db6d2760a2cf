import type { Log } from "../log.ts";
import type { Keys, RedisClient } from "../redis.ts";

/** Tells the others that this process lives. Without it, what it was sending is looked into. */
export interface Heart {
  isAlive(workerId: string): Promise<boolean>;
  close(): Promise<void>;
}

/** How many missed beats mean that a worker is gone. */
const missedBeats = 3;

export async function startHeart(options: {
  redis: RedisClient;
  key: Keys;
  workerId: string;
  beatMs: number;
  log: Log;
}): Promise<Heart> {
  const { redis, key, workerId, beatMs, log } = options;
  const beat = async () => {
    await redis.set(key("worker", workerId), "1", "PX", beatMs * missedBeats);
  };
  await beat();
  const timer = setInterval(() => {
    beat().catch((error: unknown) => log.warn("heart.missed", { error }));
  }, beatMs);

  return {
    isAlive: async (other) => (await redis.exists(key("worker", other))) === 1,
    async close() {
      clearInterval(timer);
      await redis.del(key("worker", workerId)).catch(() => undefined);
    },
  };
}
