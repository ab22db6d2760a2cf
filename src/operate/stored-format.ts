import { ConfigError } from "../config/config-error.ts";
import { counted } from "../messages/markdown.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import { processName, readProcesses } from "./presence.ts";

/**
 * The form of everything that is kept in Redis while requests are open. Any change of it gets a new
 * number, so that processes with different forms never read or write the same records. Ledgers and
 * sealed records of every format stay readable.
 */
export const storedFormat = "6";

/**
 * Takes Redis for this format. Throws a ConfigError while another format is in use there: its
 * requests are open, or its processes run. `dataDir` identifies this process: a process that ran
 * there before has ended.
 */
export async function takeFormat(
  redis: RedisClient,
  key: Keys,
  { dataDir, beatMs }: { dataDir: string; beatMs: number },
): Promise<void> {
  const held = await redis.set(key("format"), storedFormat, "NX", "GET");
  if (held === null || held === storedFormat) return;
  const [open, processes] = await Promise.all([
    redis.zcard(key("requests", "open")),
    readProcesses(redis, key, beatMs),
  ]);
  const own = processName(dataDir);
  const others = processes.filter(({ name, isMissing }) => !isMissing && name !== own);
  if (open === 0 && others.length === 0) {
    await redis.set(key("format"), storedFormat);
    return;
  }
  const facts = `${counted(open, "open request")} and ${counted(others.length, "running process", "running processes")}`;
  throw new ConfigError([
    `Redis holds stored format ${held} with ${facts}; this version of Gatehouse stores format ${storedFormat}. Freeze changes, let the open requests end, stop all processes of the other version, then start this one`,
  ]);
}
