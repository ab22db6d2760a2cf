import { Cluster, Redis } from "ioredis";
import { messageOf, UserError } from "./errors.ts";
import type { Log } from "./log.ts";
import { parseRedisUrl, type RedisAddress } from "./redis-address.ts";

export { parseRedisUrl, type RedisAddress } from "./redis-address.ts";
export { createKeys, type Keys } from "./redis-keys.ts";
export { checkRedis, type RedisCheck } from "./redis-check.ts";

export type RedisClient = Redis | Cluster;

/**
 * What a connection is for decides how it fails:
 *
 * - `commands`    says no within a second. A command is never queued while Redis is away and never sent twice.
 * - `worker`      for BullMQ's workers, whose blocking reads must wait for Redis however long it takes.
 * - `subscriber`  for SUBSCRIBE: waits, and subscribes again after a reconnect.
 */
export type RedisPurpose = "commands" | "worker" | "subscriber";

function options(purpose: RedisPurpose) {
  const common = {
    lazyConnect: true,
    connectTimeout: 5_000,
    connectionName: `gatehouse-${purpose}`,
    retryStrategy: reconnectDelay,
    // a failover left us with a replica: find the new primary, don't repeat the command
    reconnectOnError: (error: Error): 1 | false =>
      error.message.startsWith("READONLY") ? 1 : false,
  };
  if (purpose !== "commands") return { ...common, maxRetriesPerRequest: null };
  return {
    ...common,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    commandTimeout: 1_000,
    autoResendUnfulfilledCommands: false,
  };
}

/** For ever, a little later each time, never more than about two seconds apart; jitter so that a fleet spreads out. */
function reconnectDelay(times: number): number {
  return Math.min(2_000, 50 * 2 ** Math.min(times - 1, 10)) + Math.floor(Math.random() * 200);
}

/**
 * Opens one connection and waits until it answers. Later outages are its own business: it reconnects for ever and its
 * `error` events are logged, at most one line per 10 s.
 * Throws a UserError when Redis can't be reached within `patienceMs` (default 10 s), or at once when it refuses the password.
 */
export async function connectRedis(
  url: string,
  purpose: RedisPurpose,
  log: Log,
  { patienceMs = 10_000 }: { patienceMs?: number } = {},
): Promise<RedisClient> {
  const address = parseRedisUrl(url);
  const redis = open(address, purpose);
  reportErrors(redis, purpose, log);
  try {
    await ready(redis, address, patienceMs);
  } catch (error) {
    redis.disconnect();
    throw error;
  }
  return redis;
}

function open(address: RedisAddress, purpose: RedisPurpose): RedisClient {
  const shared = {
    ...options(purpose),
    ...(address.username !== undefined && { username: address.username }),
    ...(address.password !== undefined && { password: address.password }),
    ...(address.tls && { tls: {} }),
  };
  const [node] = address.nodes;
  if (address.mode === "single") return new Redis({ ...shared, db: address.db, ...node });
  const { retryStrategy: _ours, lazyConnect: _lazy, ...redisOptions } = shared;
  return new Cluster([...address.nodes], {
    lazyConnect: true,
    enableOfflineQueue: purpose !== "commands",
    clusterRetryStrategy: reconnectDelay,
    clusterNodeRetryStrategy: reconnectDelay,
    slotsRefreshTimeout: 5_000,
    // a cluster client sends a command again after a lost connection unless told not to
    retryDelayOnFailover: purpose === "commands" ? 0 : 100,
    redisOptions,
  });
}

function reportErrors(redis: RedisClient, purpose: RedisPurpose, log: Log): void {
  let quietUntil = 0;
  let lost = false;
  redis.on("error", (error: Error) => {
    lost = true;
    const now = performance.now();
    if (now < quietUntil) return;
    quietUntil = now + 10_000;
    log.warn("redis.error", { purpose, error });
  });
  redis.on("ready", () => {
    quietUntil = 0;
    if (lost) log.info("redis.back", { purpose });
    lost = false;
  });
}

async function ready(redis: RedisClient, address: RedisAddress, patienceMs: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let last = "no answer";
  const give = (hint: string) =>
    reject(new UserError(`Redis at ${address.shown} can't be used: ${last}`, hint));
  const onReady = () => resolve();
  const onError = (error: Error) => {
    last = reason(error);
    if (/^(WRONGPASS|NOAUTH|NOPERM|ERR AUTH|ERR invalid DB)/i.test(last)) {
      give("check the user, password and database in REDIS_URL");
    }
  };
  const timer = setTimeout(
    () => give("check REDIS_URL, and that Redis is running and reachable from here"),
    patienceMs,
  );
  redis.on("ready", onReady);
  redis.on("error", onError);
  redis.on("node error", onError);
  redis.connect().catch(() => {}); // it goes on trying by itself; what happened arrives as events
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    redis.off("ready", onReady);
    redis.off("error", onError);
    redis.off("node error", onError);
  }
}

/** A cluster wraps what happened to its last node. */
function reason(error: Error): string {
  const inner: unknown = "lastNodeError" in error ? error.lastNodeError : undefined;
  return messageOf(inner ?? error);
}

/**
 * A Lua script on one connection: sent whole the first time, by its hash afterwards, and whole again when Redis has
 * forgotten it. Keys and arguments as given; the reply is whatever the script returns: parse it.
 */
export type Script = (
  keys: readonly string[],
  args: readonly (string | number)[],
) => Promise<unknown>;

/** `name` must be a fresh identifier on this connection, e.g. `gatehouseMove`. */
export function defineScript(redis: RedisClient, name: string, lua: string): Script {
  redis.defineCommand(name, { lua });
  // ioredis adds the command as a method that its types can't know
  const run: unknown = Reflect.get(redis, name);
  if (typeof run !== "function") throw new Error(`ioredis did not define ${name}`);
  return async (keys, args) => {
    const reply: unknown = await Reflect.apply(run, redis, [keys.length, ...keys, ...args]);
    return reply;
  };
}
