import { ConfigError } from "../config/config.ts";
import { counted } from "../messages/message.ts";
import { countWorkers } from "../queue/heartbeat.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import { processName, readProcesses } from "./presence.ts";

/**
 * The form of all that is kept in Redis while requests are open. Any change of it has a new number: then processes of both
 * neither read nor write the same records. Ledgers and sealed records of every format stay readable.
 */
export const storedFormat = "5";

/**
 * Takes Redis for this format, or throws a ConfigError while it belongs to another: requests of that are open, or processes of it
 * run. `dataDir`: what ran there before has ended.
 */
export async function takeFormat(
  redis: RedisClient,
  key: Keys,
  { dataDir, beatMs }: { dataDir: string; beatMs: number },
): Promise<void> {
  const held = await redis.set(key("format"), storedFormat, "NX", "GET");
  if (held === null || held === storedFormat) return;
  const [open, processes, workers] = await Promise.all([
    redis.zcard(key("requests", "open")),
    readProcesses(redis, key, beatMs),
    countWorkers(redis, key),
  ]);
  const own = processName(dataDir);
  const others = processes.filter(({ name, isMissing }) => !isMissing && name !== own);
  // Releases before this one report their workers alone
  const running = Math.max(others.length, workers);
  if (open === 0 && running === 0) {
    await redis.set(key("format"), storedFormat);
    return;
  }
  const facts = `${counted(open, "open request")} and ${counted(running, "running process", "running processes")}`;
  throw new ConfigError([
    `Redis holds stored format ${held} with ${facts}; this version of Gatehouse stores format ${storedFormat}. Freeze changes, let the open requests end, stop all processes of the other version, then start this one`,
  ]);
}
