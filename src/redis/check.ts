import type { Redis } from "ioredis";
import type { RedisClient } from "./redis.ts";

/** Whether Redis keeps its data. `sentence`: what is wrong, and the fix. `untold`: what nobody but its operator can see to. */
export type RedisCheck =
  | { kind: "ok"; untold?: string }
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
  const { volatile, unknown, untold } = await checkServer(redis);
  if (volatile !== undefined)
    return { kind: "volatile", sentence: volatile, allowed: allowVolatile };
  if (unknown !== undefined) return { kind: "unchecked", sentence: unknown };
  return { kind: "ok", ...(untold === undefined ? {} : { untold }) };
}

interface Found {
  volatile?: string;
  unknown?: string;
  untold?: string;
}

async function checkServer(server: Redis): Promise<Found> {
  const info = parseInfo(await ask(() => server.info()));
  const appendOnly = info.get("aof_enabled") ?? yesNo(await setting(server, "appendonly"));
  const policy = info.get("maxmemory_policy") ?? (await setting(server, "maxmemory-policy"));
  const lastWrite = info.get("aof_last_write_status");
  const volatile = volatileSentence({ appendOnly, policy, lastWrite });
  if (volatile !== undefined) return { volatile };
  const replay = await replayProblem(server);
  if (replay?.volatile !== undefined) return replay;
  const missing = [
    appendOnly === undefined && "appendonly",
    policy === undefined && "maxmemory-policy",
  ].filter(Boolean);
  if (missing.length === 0) return replay ?? {};
  return {
    unknown: `This Redis doesn't report its configuration: check ${missing.join(" and ")} (appendonly yes, maxmemory-policy noeviction).`,
  };
}

const replays = "`user default off ~* &* +@all`, which still lets no one in";

/**
 * Redis replays its append-only file as the user `default`, and until redis/redis#14545 (in Valkey still) drops each MULTI/EXEC
 * in it, which is every script that writes twice, for what that user may not do. Whether it is off doesn't matter.
 */
async function replayProblem(server: Redis): Promise<Found | undefined> {
  // What this user wrote, it may replay
  if ((server.options.username ?? "default") === "default") return undefined;
  const told = await ask(() => server.call("ACL", "GETUSER", "default"));
  if (told === undefined)
    return {
      untold: `this Redis doesn't tell what its user \`default\` may do, as which it replays its file at a restart: check that it is ${replays}, or allow Gatehouse's user \`+acl|getuser\``,
    };
  if (mayReplay(told)) return undefined;
  return {
    volatile: `Redis replays its append-only file as the user \`default\`, which may not do what is in it, so a restart would drop what was sent. Set ${replays}, in its ACL file and start it again.`,
  };
}

/** None of them stands in a transaction of ours. */
const neverReplayed =
  /^-(@(dangerous|admin|scripting|pubsub|connection|blocking)|acl|bg\w+|client|cluster|config|debug|eval\w*|failover|fcall\w*|flush\w+|function|info|keys|latency|memory|migrate|module|monitor|replicaof|restore|restore-asking|role|save|script|shutdown|slaveof|slowlog|sort\w*|swapdb|sync|psync|p?subscribe|publish)(\|.*)?$/;

/** Of what ACL GETUSER says: Redis 6 lists keys, and names "everything" among the flags. */
function mayReplay(told: unknown): boolean {
  if (!Array.isArray(told)) return true; // null: there is no such user, nor ACLs as Redis has them
  const field = (name: string) => [told[told.indexOf(name) + 1] ?? []].flat().map(String);
  const [all, ...changed] = field("commands").join(" ").split(" ");
  const keys = [...field("keys").flatMap((one) => one.split(" ")), ...field("flags")];
  return (
    all === "+@all" &&
    changed.every((rule) => rule.startsWith("+") || neverReplayed.test(rule)) &&
    keys.some((one) => ["~*", "*", "allkeys"].includes(one))
  );
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
