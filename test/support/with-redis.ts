import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject } from "vitest";
import { createJournal } from "../../src/core/request/journal.ts";
import { stretchDeadlines } from "../../src/deadline.ts";
import { silentLog, type Log } from "../../src/log/log.ts";
import {
  createKeys,
  type Keys,
  connectRedis,
  type RedisClient,
  type RedisPurpose,
} from "../../src/redis/redis.ts";
import { startRedis } from "../../sandbox/ensure-redis.ts";

export interface TestRedis extends AsyncDisposable {
  readonly redis: RedisClient;
  readonly key: Keys;
  readonly url: string;
}

/** A connection to the shared Redis and a namespace nobody else has: `await using world = await testRedis()`. */
export async function testRedis(
  purpose: RedisPurpose = "commands",
  log: Log = silentLog(),
): Promise<TestRedis> {
  const url = inject("redisUrl");
  const redis = await connectRedis(url, purpose, log);
  const key = createKeys(`test-${randomBytes(6).toString("hex")}`);
  return { redis, key, url, [Symbol.asyncDispose]: async () => redis.disconnect() };
}

/**
 * A connection that gives up after this part of the time that it has in production. All others, which are stretched as usual, stay
 * patient, so that what is broken for this one is late for it alone.
 */
export async function connectImpatiently(
  url: string,
  purpose: RedisPurpose,
  { part = 1, log = silentLog() } = {},
): Promise<RedisClient> {
  stretchDeadlines(part);
  const connecting = connectRedis(url, purpose, log);
  stretchDeadlines(30);
  return connecting;
}

/** A journal in the shared Redis, in a namespace of its own. */
export async function testJournal() {
  const world = await testRedis();
  return { ...world, store: createJournal(world.redis, world.key) };
}

export interface PrivateRedis extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly dir: string;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** SIGTERM, data kept. */
  stop(): Promise<void>;
  /** After `kill` or `stop`: on the same port with the same data, or other settings. */
  start(args?: readonly string[]): Promise<void>;
}

/** A Redis that a test may kill and start again. */
export async function privateRedis(
  args: readonly string[] = [],
  own: { program?: string } = {},
): Promise<PrivateRedis> {
  const dir = await mkdtemp(join(tmpdir(), "gatehouse-redis-"));
  let server = await startRedis({ dir, args, ...own });
  const { url, port } = server;
  return {
    url,
    port,
    dir,
    kill: () => server.kill(),
    stop: () => server.stop(),
    start: async (next = args) => {
      server = await startRedis({ dir, port, args: next, ...own });
    },
    [Symbol.asyncDispose]: async () => {
      await server.kill();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
