import { Cluster, type Redis } from "ioredis";

/** Whether what Redis is told will still be there tomorrow. `sentence` says what is wrong and what mends it. */
export type RedisCheck =
  | { kind: "ok" }
  /** `allowed`: a person has said that this is only for play. */
  | { kind: "volatile"; sentence: string; allowed: boolean }
  | { kind: "unchecked"; sentence: string };

/**
 * Requests are the truth about what was sent, so a Redis that forgets (no append-only file) or throws away (an evicting
 * maxmemory-policy) must not be trusted with changes. INFO is asked first: managed services allow it where they
 * forbid CONFIG. A Cluster is as good as its worst primary.
 */
export async function checkRedis(
  redis: Redis | Cluster,
  { allowVolatile }: { allowVolatile: boolean },
): Promise<RedisCheck> {
  const servers = redis instanceof Cluster ? redis.nodes("master") : [redis];
  const checks = await Promise.all(servers.map((server) => checkServer(server)));
  const problem =
    checks.find((check) => check.volatile !== undefined) ??
    checks.find((check) => check.unknown !== undefined);
  if (problem?.volatile !== undefined)
    return { kind: "volatile", sentence: problem.volatile, allowed: allowVolatile };
  if (problem?.unknown !== undefined) return { kind: "unchecked", sentence: problem.unknown };
  return { kind: "ok" };
}

interface ServerCheck {
  volatile?: string;
  unknown?: string;
}

async function checkServer(server: Redis): Promise<ServerCheck> {
  const info = parseInfo(await ask(() => server.info()));
  const appendOnly = info.get("aof_enabled") ?? yesNo(await setting(server, "appendonly"));
  const policy = info.get("maxmemory_policy") ?? (await setting(server, "maxmemory-policy"));
  const volatile = volatileSentence({
    appendOnly,
    policy,
    lastWrite: info.get("aof_last_write_status"),
  });
  if (volatile !== undefined) return { volatile };
  const missing = [
    appendOnly === undefined && "appendonly",
    policy === undefined && "maxmemory-policy",
  ].filter(Boolean);
  if (missing.length === 0) return {};
  return {
    unknown: `This Redis doesn't say how it is set up: make sure that ${missing.join(" and ")} ${missing.length > 1 ? "are" : "is"} right (appendonly yes, maxmemory-policy noeviction).`,
  };
}

/** Pure: the sentence for what was read, or undefined when it is fine or unknown. */
export function volatileSentence(seen: {
  appendOnly: string | undefined;
  policy: string | undefined;
  lastWrite: string | undefined;
}): string | undefined {
  if (seen.appendOnly === "0") {
    return "Redis keeps nothing on disk, so a restart would forget what was sent. Set `appendonly yes` in redis.conf, or run `redis-cli CONFIG SET appendonly yes` and `redis-cli CONFIG REWRITE`.";
  }
  if (seen.policy !== undefined && seen.policy !== "noeviction") {
    return `Redis may throw away our records when memory is short (maxmemory-policy is ${seen.policy}). Set \`maxmemory-policy noeviction\` in redis.conf, or run \`redis-cli CONFIG SET maxmemory-policy noeviction\` and \`redis-cli CONFIG REWRITE\`.`;
  }
  if (seen.lastWrite !== undefined && seen.lastWrite !== "ok") {
    return "Redis can't write its append-only file: make room on its disk, or look into its log.";
  }
  return undefined;
}

async function setting(server: Redis, name: string): Promise<string | undefined> {
  const reply = await ask(() => server.config("GET", name));
  return Array.isArray(reply) && typeof reply[1] === "string" ? reply[1] : undefined;
}

function yesNo(value: string | undefined): string | undefined {
  return value === undefined ? undefined : value === "yes" ? "1" : "0";
}

/** The answer, or undefined when Redis refuses the question. Anything else that goes wrong is thrown. */
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

function parseInfo(text: unknown): ReadonlyMap<string, string> {
  if (typeof text !== "string") return new Map();
  const pairs = text.split(/\r?\n/).flatMap((line) => {
    const colon = line.indexOf(":");
    return colon < 1 || line.startsWith("#")
      ? []
      : [[line.slice(0, colon), line.slice(colon + 1)] as const];
  });
  return new Map(pairs);
}
