import type { Log } from "../log.ts";
import type { Keys, RedisClient } from "../redis.ts";

/** Tells the others that this process lives. Without it, what it was sending is looked into. */
export interface Heart {
  isAlive(workerId: string): Promise<boolean>;
  /** From here on these ids live and die with this process too. */
  beatFor(ids: readonly string[]): Promise<void>;
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
  const ids = [workerId];
  const beat = async () => {
    const beats = redis.pipeline();
    for (const id of ids) beats.set(key("worker", id), "1", "PX", beatMs * missedBeats);
    for (const [error] of (await beats.exec()) ?? []) if (error) throw error;
  };
  await beat();
  const timer = setInterval(() => {
    beat().catch((error: unknown) => log.warn("heart.missed", { error }));
  }, beatMs);

  return {
    isAlive: async (other) => (await redis.exists(key("worker", other))) === 1,
    async beatFor(more) {
      ids.push(...more);
      await beat();
    },
    async close() {
      clearInterval(timer);
      await redis.del(ids.map((id) => key("worker", id))).catch(() => undefined);
    },
  };
}
