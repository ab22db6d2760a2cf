import { type Config } from "../config/config.ts";
import { ConfigError } from "../config/config-error.ts";
import { UserError } from "../errors.ts";
import type { Log } from "../log/log.ts";
import { logUnreadableValues } from "../redis/define-record.ts";
import { checkRedis, storageOf, storageProblems } from "../redis/check.ts";
import { type RedisClient, type RedisPurpose, connectRedis, createKeys } from "../redis/redis.ts";
import type { Opened } from "./opened.ts";
import { takeFormat } from "./stored-format.ts";

/**
 * Connects to Redis, and refuses one that may forget what was sent, or that holds another stored
 * format. Each further connection (`connected`) is closed with the process.
 */
export async function openRedis(config: Config, { log, opened }: { log: Log; opened: Opened }) {
  opened(logUnreadableValues(log));
  const key = createKeys(config.redisNamespace);
  async function connected(purpose: RedisPurpose): Promise<RedisClient> {
    const how = { namespace: key.namespace, certificate: () => config.redisCertificate };
    const client = await connectRedis(() => config.redisUrl, purpose, log, how);
    opened({ close: () => client.quit() });
    return client;
  }
  const redis = await connected("commands");
  /** Whether Redis keeps its data, which somebody may change while Gatehouse runs. */
  const redisCheckNow = () => checkRedis(redis, { allowVolatile: config.allowVolatileRedis });
  const redisCheck = await redisCheckNow();
  if (redisCheck.kind === "volatile" && !redisCheck.allowed)
    throw redisCheck.mayPass
      ? new UserError(redisCheck.sentence)
      : new ConfigError([`REDIS_URL: ${redisCheck.sentence}`]);
  const { heartbeatMs } = config.policy.timing;
  await takeFormat(redis, key, { dataDir: config.dataDir, beatMs: heartbeatMs });
  const storageProblemsNow = async () =>
    storageProblems(await storageOf(redis), config.redisReplicas);
  for (const problem of await storageProblemsNow()) log.warn("redis.storage", { ...problem });
  return { redis, key, connected, redisCheck, redisCheckNow, storageProblemsNow };
}
