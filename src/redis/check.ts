import type { Redis } from "ioredis";
import type { RedisClient } from "./redis.ts";

/** Whether Redis keeps its data. `sentence`: what is wrong, and the fix. */
export type RedisCheck =
  | { kind: "ok" }
  | { kind: "volatile"; sentence: string; allowed: boolean }
  | { kind: "unchecked"; sentence: string };

/**
 * The journal says what was sent, so a Redis that forgets (no append-only file) or evicts (maxmemory-policy) must not be
 * trusted with changes. INFO first: managed services allow it where they forbid CONFIG.
 */
export async function checkRedis(
  redis: Redis,
  { allowVolatile }: { allowVolatile: boolean },
): Promise<RedisCheck> {
  const { volatile, unknown } = await checkServer(redis);
  if (volatile !== undefined)
    return { kind: "volatile", sentence: volatile, allowed: allowVolatile };
  if (unknown !== undefined) return { kind: "unchecked", sentence: unknown };
  return { kind: "ok" };
}

async function checkServer(server: Redis): Promise<{ volatile?: string; unknown?: string }> {
  const info = parseInfo(await ask(() => server.info()));
  const appendOnly = info.get("aof_enabled") ?? yesNo(await setting(server, "appendonly"));
  const policy = info.get("maxmemory_policy") ?? (await setting(server, "maxmemory-policy"));
  const lastWrite = info.get("aof_last_write_status");
  // What default itself wrote, it may replay
  const replaysAll =
    (server.options.username ?? "default") === "default" ||
    mayReplayAll(await ask(() => server.call("ACL", "GETUSER", "default")));
  const volatile = volatileSentence({ appendOnly, policy, lastWrite, replaysAll });
  if (volatile !== undefined) return { volatile };
  const missing = [
    appendOnly === undefined && "`appendonly yes`",
    policy === undefined && "`maxmemory-policy noeviction`",
    replaysAll === undefined &&
      `\`${defaultUser}\` or more (to let Gatehouse check it: \`+acl|getuser\` for its own user)`,
  ].filter((one) => one !== false);
  if (missing.length === 0) return {};
  return {
    unknown: `This Redis doesn't report all of its configuration. Check that it has: ${missing.join(", ")}.`,
  };
}

const defaultUser = "user default off ~* &* +@all";

/**
 * Whether the user default may do everything, which a Redis needs that has users: it replays its append-only file as that user,
 * and drops each transaction, so each script that wrote twice, of which one command is refused
 * (https://github.com/redis/redis/issues/14545). Off or on doesn't matter. Undefined where Redis doesn't say.
 */
function mayReplayAll(answer: unknown): boolean | undefined {
  if (!Array.isArray(answer)) return undefined;
  // Redis 6.2 lists keys without their ~, and has the rights of commands in the same words
  const of = (name: string) => String(answer[answer.indexOf(name) + 1] ?? "");
  return of("commands") === "+@all" && /^(~?\*)$/.test(of("keys"));
}

/** How the server that has a key stores what it is told; undefined where it doesn't say. */
export interface Storage {
  appendOnly: boolean | undefined;
  /** `appendfsync`: always, everysec, no. */
  fsync: string | undefined;
  /** Those connected and in step. */
  replicas: number | undefined;
  /** `min-replicas-to-write`. */
  minReplicas: number | undefined;
  /** Knows WAITAOF (from Redis 7.2 on). */
  waitAof: boolean | undefined;
}

export async function storageOf(redis: RedisClient): Promise<Storage> {
  const answers = await redis
    .pipeline()
    .info()
    .config("GET", "appendfsync")
    .config("GET", "min-replicas-to-write")
    .call("COMMAND", "INFO", "WAITAOF")
    .exec();
  if (!answers) throw new Error("no answer");
  const [all, fsync, minReplicas, waitAof] = await Promise.all(
    answers.map(([error, answer]) =>
      ask(() => (error ? Promise.reject(error) : Promise.resolve(answer))),
    ),
  );
  const info = parseInfo(all);
  const least = Number(valueIn(minReplicas) ?? Number.NaN);
  const aof = info.get("aof_enabled");
  return {
    appendOnly: aof === undefined ? undefined : aof === "1",
    fsync: valueIn(fsync),
    replicas: replicasIn(all),
    minReplicas: Number.isNaN(least) ? undefined : least,
    waitAof: Array.isArray(waitAof) ? Array.isArray(waitAof[0]) : undefined,
  };
}

/** How many replicas are in step, of what INFO says; undefined where it doesn't say. */
export function replicasIn(replication: unknown): number | undefined {
  const info = parseInfo(replication);
  if (!info.has("role")) return undefined;
  return [...info].filter(([name, value]) => /^slave\d+$/.test(name) && /state=online/.test(value))
    .length;
}

export interface StorageProblem {
  sentence: string;
  /** Nothing is sent until it is mended. */
  stops: boolean;
}

/** What doesn't hold of "no claim is forgotten", each with its remedy. `wanted`: REDIS_REPLICAS. */
export function storageProblems(
  { appendOnly, fsync, replicas, minReplicas, waitAof }: Storage,
  wanted: number | undefined,
): readonly StorageProblem[] {
  const needed = wanted ?? Math.min(1, replicas ?? 0);
  const found: StorageProblem[] = [];
  const say = (sentence: string, stops = false) => void found.push({ sentence, stops });
  if (replicas !== undefined && replicas < needed)
    say(`REDIS_REPLICAS is ${needed}, but ${replicas} are connected: nothing is sent`, true);
  if (appendOnly !== false && fsync !== "always" && waitAof !== true)
    say(
      fsync === undefined
        ? "it doesn't report `appendfsync`: check that it is `always`"
        : `\`appendfsync\` is ${fsync}, so its last ${fsync === "no" ? "minute" : "second"} may be lost when its machine fails: set it to \`always\`, or use Redis 7.2 or newer, which confirms claims`,
    );
  if (needed > 0 && minReplicas === 0)
    say(
      `\`min-replicas-to-write\` is 0: cut off from its replicas, it takes writes that a failover forgets. Set it to ${needed}`,
    );
  return found;
}

/** Undefined when it is fine or unknown. */
export function volatileSentence(seen: {
  appendOnly: string | undefined;
  policy: string | undefined;
  lastWrite: string | undefined;
  replaysAll: boolean | undefined;
}): string | undefined {
  if (seen.appendOnly === "0") {
    return "Redis keeps nothing on disk, so a restart would forget what was sent. Set `appendonly yes` in redis.conf, or run `redis-cli CONFIG SET appendonly yes` and `redis-cli CONFIG REWRITE`.";
  }
  if (seen.policy !== undefined && seen.policy !== "noeviction") {
    return `Redis may evict Gatehouse's records when memory runs short (maxmemory-policy is ${seen.policy}). Set \`maxmemory-policy noeviction\` in redis.conf, or run \`redis-cli CONFIG SET maxmemory-policy noeviction\` and \`redis-cli CONFIG REWRITE\`.`;
  }
  if (seen.lastWrite !== undefined && seen.lastWrite !== "ok") {
    return "Redis can't write its append-only file: free space on its disk, or check its log.";
  }
  if (seen.replaysAll === false) {
    return `After a restart Redis would drop what scripts wrote: it replays its append-only file as the user default, who lacks rights. Set \`${defaultUser}\` (still off) in the ACL file and load it, or run \`redis-cli ACL SETUSER ${defaultUser.slice(5)}\` and \`redis-cli ACL SAVE\`.`;
  }
  return undefined;
}

async function setting(server: Redis, name: string): Promise<string | undefined> {
  return valueIn(await ask(() => server.config("GET", name)));
}

function valueIn(reply: unknown): string | undefined {
  return Array.isArray(reply) && typeof reply[1] === "string" ? reply[1] : undefined;
}

function yesNo(value: string | undefined): string | undefined {
  return value === undefined ? undefined : value === "yes" ? "1" : "0";
}

/** Undefined when Redis refuses the command; other errors are thrown. */
async function ask(question: () => Promise<unknown>): Promise<unknown> {
  try {
    return await question();
  } catch (error) {
    const refusedByRedis =
      error instanceof Error &&
      /^(NOPERM|ERR unknown|ERR .*(disabled|forbidden|not allowed))/i.test(error.message);
    if (refusedByRedis) return undefined;
    throw error;
  }
}

/** The lines of INFO, by name. */
export function parseInfo(text: unknown): ReadonlyMap<string, string> {
  if (typeof text !== "string") return new Map();
  const pairs = text.split(/\r?\n/).flatMap((line) => {
    const colon = line.indexOf(":");
    return colon < 1 || line.startsWith("#")
      ? []
      : [[line.slice(0, colon), line.slice(colon + 1)] as const];
  });
  return new Map(pairs);
}
