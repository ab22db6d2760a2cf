import { ConfigError } from "../config/config.ts";
import { countWorkers } from "../jobs/liveness.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";

/**
 * The form of all that is kept in Redis while requests are open. Any change of it has a new number: then processes of both
 * neither read nor write the same records. Ledgers and sealed records of every format stay readable.
 */
export const storedFormat = "2";

/**
 * Takes Redis for this format, or throws a ConfigError while it belongs to another: requests of that are open, or workers of it
 * run.
 */
export async function takeFormat(redis: RedisClient, key: Keys): Promise<void> {
  const held = await redis.set(key("format"), storedFormat, "NX", "GET");
  if (held === null || held === storedFormat) return;
  const [open, workers] = await Promise.all([
    redis.zcard(key("requests", "open")),
    countWorkers(redis, key),
  ]);
  if (open === 0 && workers === 0) {
    await redis.set(key("format"), storedFormat);
    return;
  }
  const facts = [
    ...(open > 0 ? [`${open} open ${open === 1 ? "request" : "requests"}`] : []),
    ...(workers > 0 ? [`${workers} running ${workers === 1 ? "worker" : "workers"}`] : []),
  ];
  throw new ConfigError([
    `Redis holds stored format ${held} with ${facts.join(" and ")}; this version of Gatehouse stores format ${storedFormat}. Freeze changes, let the open requests end, stop all processes of the other version, then start this one`,
  ]);
}
