import type { Redis } from "ioredis";
import type { RedisClient } from "./redis.ts";

/** Whether Redis keeps its data. `sentence` says what is wrong, and the fix. */
export type RedisCheck =
  | { kind: "ok" }
  | {
      kind: "volatile";
      /** The problem alone, as a clause: `Redis keeps nothing on disk`. */
      why: string;
      sentence: string;
      allowed: boolean;
      /** True when the problem may end without a change of the configuration. */
      mayPass?: boolean;
    }
  | { kind: "unchecked"; sentence: string };

/**
 * Checks that Redis keeps its data: at the start, before each send, and for people. The journal records what was sent, so a Redis that forgets (no
 * append-only file) or evicts (maxmemory-policy) must not be trusted with changes. INFO is asked
 * first, because managed services allow it where they forbid CONFIG.
 */
export async function checkRedis(
  redis: Redis,
  { allowVolatile }: { allowVolatile: boolean },
): Promise<RedisCheck> {
  const isDefault = (redis.options.username ?? "default") === "default";
  const [all, defaultNow] = await Promise.all([
    ask(() => redis.info()),
    isDefault ? undefined : ask(() => redis.call("ACL", "GETUSER", "default")),
  ]);
  const info = parseInfo(all);
  const appendOnly = info.get("aof_enabled") ?? (await setting(redis, "appendonly"));
  const policy = info.get("maxmemory_policy") ?? (await setting(redis, "maxmemory-policy"));
  const lastWrite = info.get("aof_last_write_status");
  // Redis replays its append-only file as the user `default`, which may do whatever it wrote
  // itself.
  const replaysAll = isDefault || mayReplayAll(defaultNow);
  const volatile = volatileProblem({ appendOnly, policy, lastWrite, replaysAll });
  if (volatile !== undefined) return { kind: "volatile", ...volatile, allowed: allowVolatile };
  const missing = [
    appendOnly === undefined && "`appendonly yes`",
    policy === undefined && "`maxmemory-policy noeviction`",
    replaysAll === undefined &&
      `\`${defaultUser}\` or more (to let Gatehouse check it: \`+acl|getuser\` for its own user)`,
  ].filter((entry) => entry !== false);
  if (missing.length === 0) return { kind: "ok" };
  const sentence = `This Redis doesn't report all of its configuration. Check that it has: ${missing.join(", ")}.`;
  return { kind: "unchecked", sentence };
}

const defaultUser = "user default off ~* &* +@all";

/**
 * Whether the user `default` may run every command on every key. A Redis with other users needs
 * that: it replays its append-only file as `default`, and drops each transaction (and so each
 * script that wrote twice) of which one command is refused
 * (https://github.com/redis/redis/issues/14545). It doesn't matter whether `default` is on or off.
 * Undefined when Redis doesn't say.
 */
function mayReplayAll(answer: unknown): boolean | undefined {
  if (!Array.isArray(answer)) return undefined;
  // Redis 6.2 lists keys without their ~, and writes the rights to commands in the same way.
  const of = (name: string) => String(answer[answer.indexOf(name) + 1] ?? "");
  return of("commands") === "+@all" && /^(~?\*)$/.test(of("keys"));
}

/**
 * How the server that holds a key stores its data. A member is undefined when the server doesn't
 * say.
 */
export async function storageOf(redis: RedisClient) {
  const [all, fsync, minReplicas, waitAof] = await Promise.all([
    ask(() => redis.info()),
    setting(redis, "appendfsync"),
    setting(redis, "min-replicas-to-write"),
    ask(() => redis.call("COMMAND", "INFO", "WAITAOF")),
  ]);
  const aof = parseInfo(all).get("aof_enabled");
  return {
    appendOnly: aof === undefined ? undefined : aof === "1",
    /** `appendfsync`: always, everysec, or no. */
    fsync,
    /** The number of replicas that are connected and in sync. */
    replicas: replicasIn(all),
    /** `min-replicas-to-write`. */
    minReplicas: minReplicas === undefined ? undefined : Number(minReplicas),
    /** Whether the server has WAITAOF (Redis 7.2 and newer). */
    waitAof: Array.isArray(waitAof) ? Array.isArray(waitAof[0]) : undefined,
  };
}

export type Storage = Awaited<ReturnType<typeof storageOf>>;

/** How many replicas are in sync according to INFO. Undefined when it doesn't say. */
export function replicasIn(replication: unknown): number | undefined {
  const info = parseInfo(replication);
  if (!info.has("role")) return undefined;
  return [...info].filter(([name, value]) => /^slave\d+$/.test(name) && /state=online/.test(value))
    .length;
}

/**
 * Why a claim could be forgotten, each reason with its remedy. With `stops`, nothing is sent until
 * it is fixed. `wanted` is REDIS_REPLICAS.
 */
export function storageProblems(
  { appendOnly, fsync, replicas, minReplicas, waitAof }: Storage,
  wanted: number | undefined,
) {
  const needed = wanted ?? Math.min(1, replicas ?? 0);
  const shortfalls: { sentence: string; stops: boolean }[] = [];
  const add = (sentence: string, { stops } = { stops: false }) =>
    void shortfalls.push({ sentence, stops });
  if (replicas !== undefined && replicas < needed)
    add(`REDIS_REPLICAS is ${needed}, but ${replicas} are connected: nothing is sent`, {
      stops: true,
    });
  if (appendOnly !== false && fsync !== "always" && waitAof !== true)
    add(
      fsync === undefined
        ? "it doesn't report `appendfsync`: check that it is `always`"
        : `\`appendfsync\` is ${fsync}, so its last ${fsync === "no" ? "minute" : "second"} may be lost when its machine fails: set it to \`always\`, or use Redis 7.2 or newer, which confirms claims`,
    );
  if (needed > 0 && minReplicas === 0)
    add(
      `\`min-replicas-to-write\` is 0: cut off from its replicas, it takes writes that a failover forgets. Set it to ${needed}`,
    );
  return shortfalls;
}

/** Why this Redis may lose data, and the fix. Undefined when it keeps its data, or doesn't say. */
export function volatileProblem(seen: {
  appendOnly: string | undefined;
  policy: string | undefined;
  lastWrite: string | undefined;
  replaysAll: boolean | undefined;
}): { why: string; sentence: string; mayPass?: boolean } | undefined {
  if (seen.appendOnly === "0" || seen.appendOnly === "no") {
    const why = "Redis keeps nothing on disk";
    return {
      why,
      sentence: `${why}, so a restart would forget what was sent. Set \`appendonly yes\` in redis.conf, or run \`redis-cli CONFIG SET appendonly yes\` and \`redis-cli CONFIG REWRITE\`.`,
    };
  }
  if (seen.policy !== undefined && seen.policy !== "noeviction") {
    const why = "Redis may evict Gatehouse's records";
    return {
      why,
      sentence: `${why} when memory runs short (maxmemory-policy is ${seen.policy}). Set \`maxmemory-policy noeviction\` in redis.conf, or run \`redis-cli CONFIG SET maxmemory-policy noeviction\` and \`redis-cli CONFIG REWRITE\`.`,
    };
  }
  if (seen.lastWrite !== undefined && seen.lastWrite !== "ok") {
    const why = "Redis can't write its append-only file";
    return { why, sentence: `${why}: free space on its disk, or check its log.`, mayPass: true };
  }
  if (seen.replaysAll === false) {
    const why = "After a restart Redis would drop what scripts wrote";
    return {
      why,
      sentence: `${why}: it replays its append-only file as the user default, who lacks rights. Set \`${defaultUser}\` (still off) in the ACL file and load it, or run \`redis-cli ACL SETUSER ${defaultUser.slice(5)}\` and \`redis-cli ACL SAVE\`.`,
    };
  }
  return undefined;
}

async function setting(redis: Redis, name: string): Promise<string | undefined> {
  const reply = await ask(() => redis.config("GET", name));
  return Array.isArray(reply) && typeof reply[1] === "string" ? reply[1] : undefined;
}

/** Undefined when Redis refuses the command; other errors are thrown. */
async function ask(question: () => Promise<unknown>): Promise<unknown> {
  try {
    return await question();
  } catch (error) {
    const refused = /^(NOPERM|ERR unknown|ERR .*(disabled|forbidden|not allowed))/i;
    if (error instanceof Error && refused.test(error.message)) return undefined;
    throw error;
  }
}

/** How full the memory of a Redis is. */
export interface RedisMemory {
  usedBytes: number;
  /** `maxmemory`. 0 means no limit. */
  mostBytes: number;
}

/** Undefined when Redis doesn't say. */
export async function readMemory(redis: Pick<Redis, "info">): Promise<RedisMemory | undefined> {
  return memoryIn(parseInfo(await ask(() => redis.info("memory"))));
}

export function memoryIn(info: ReadonlyMap<string, string>): RedisMemory | undefined {
  const used = info.get("used_memory");
  if (used === undefined) return undefined;
  return { usedBytes: Number(used), mostBytes: Number(info.get("maxmemory") ?? 0) };
}

const nearlyFullAt = 0.8;
const mib = (bytes: number) => `${Math.ceil(bytes / 1024 / 1024)} MiB`;

/** `memory: 12 MiB of 512 MiB used`, whether people should act, and how. */
export function judgeMemory({ usedBytes, mostBytes }: RedisMemory) {
  const limit = mostBytes > 0 ? `of ${mib(mostBytes)} used` : "used, no limit";
  return {
    words: `memory: ${mib(usedBytes)} ${limit}`,
    isNearlyFull: mostBytes > 0 && usedBytes >= nearlyFullAt * mostBytes,
    mend: memoryMend,
  };
}

const memoryMend =
  "Raise maxmemory, or archive old audit records (audit archive): a full Redis takes no requests.";

/** The lines of INFO, by name. */
export function parseInfo(text: unknown): ReadonlyMap<string, string> {
  const lines = typeof text === "string" ? text.matchAll(/^([^:#\r\n]+):(.*)$/gm) : [];
  return new Map([...lines].map(([, name = "", value = ""]) => [name, value]));
}
