import { type Config, ConfigError } from "../../config/config.ts";
import { parseRedisUrl } from "../../config/redis-address.ts";
import { messageOf, UserError } from "../../errors.ts";
import { silentLog } from "../../log/log.ts";
import {
  checkRedis,
  parseInfo,
  type RedisCheck,
  storageOf,
  type StorageProblem,
  storageProblems,
} from "../../redis/check.ts";
import { connectRedis, createKeys } from "../../redis/redis.ts";
import { type Finding, ill, note, well } from "./finding.ts";

export type RedisFacts =
  | { unusable: string }
  | {
      /** Where and what: `redis:6379, alone`. */
      setUp: string;
      version: string | undefined;
      roundTripMs: number;
      check: RedisCheck;
      storage: readonly StorageProblem[];
      /** Why a write of Gatehouse's own key was refused. */
      writeProblem: string | undefined;
      usedBytes: number | undefined;
      /** 0: no limit. */
      mostBytes: number | undefined;
    };

const modes = { single: "alone", cluster: "Cluster", sentinel: "Sentinel" } as const;

/** Writes one key of Gatehouse's own, which expires within a minute. */
export async function lookAtRedis(config: Config): Promise<RedisFacts> {
  const key = createKeys();
  try {
    const redis = await connectRedis(config.redisUrl, "commands", silentLog(), {
      namespace: key.namespace,
      patienceMs: 3_000,
    });
    try {
      const times: number[] = [];
      for (let n = 0; n < 5; n += 1) {
        const began = performance.now();
        await redis.ping();
        times.push(performance.now() - began);
      }
      const info = parseInfo(await redis.info().catch(() => ""));
      const { mode, shown } = parseRedisUrl(config.redisUrl);
      const bytes = (name: string) => {
        const text = info.get(name);
        return text === undefined ? undefined : Number(text);
      };
      const setUp = info.get("cluster_enabled") === "1" ? "Cluster" : modes[mode];
      return {
        setUp: `${shown}, ${setUp}`,
        version: info.get("redis_version"),
        roundTripMs: times.toSorted((a, b) => a - b)[2] ?? 0,
        check: await checkRedis(redis, { allowVolatile: config.allowVolatileRedis }),
        storage: storageProblems(await storageOf(redis), config.redisReplicas),
        writeProblem: await redis.set(key("probe"), "1", "PX", 60_000).then(
          () => undefined,
          (error: unknown) => messageOf(error),
        ),
        usedBytes: bytes("used_memory"),
        mostBytes: bytes("maxmemory"),
      };
    } finally {
      redis.disconnect();
    }
  } catch (error) {
    if (error instanceof ConfigError) return { unusable: error.problems.join("; ") };
    const hint = error instanceof UserError && error.hint ? `; ${error.hint}` : "";
    return { unusable: messageOf(error) + hint };
  }
}

const oldest = 6.2;
const slowMs = 20;

export function judgeRedis(facts: RedisFacts): readonly Finding[] {
  if ("unusable" in facts)
    return [
      ill(facts.unusable, "Nothing can be done until Redis answers: check REDIS_URL and Redis."),
    ];
  const { version, roundTripMs, check, storage, writeProblem } = facts;
  const known = version === undefined ? "" : `, Redis ${version}`;
  const trip = `round trip: ${roundTripMs.toFixed(1)} ms`;
  return [
    version !== undefined && Number.parseFloat(version) < oldest
      ? ill(`${facts.setUp}${known}`, `Use Redis ${oldest} or newer, or Valkey.`)
      : well(facts.setUp + known),
    roundTripMs > slowMs
      ? note(
          trip,
          "Each request needs some ten of them: bring Redis nearer, or find out why it is slow.",
        )
      : well(trip),
    writeProblem === undefined
      ? well("its user may write Gatehouse's keys")
      : ill(
          `it refuses to write: ${writeProblem}`,
          "Its user needs {gatehouse}:* and the commands in compose.yaml; a replica or a full Redis takes no writes.",
        ),
    ...checkFinding(check),
    ...storage.map(({ sentence, stops }) =>
      stops
        ? ill(sentence, "Bring the replicas back, or lower REDIS_REPLICAS.")
        : note(sentence, "docs/promise.md says what may be lost at worst."),
    ),
    ...memoryFinding(facts),
  ];
}

function checkFinding(check: RedisCheck): readonly Finding[] {
  if (check.kind === "ok") return [well("keeps everything on disk, evicts nothing")];
  if (check.kind === "unchecked")
    return [note(check.sentence, "A managed Redis may not say; its provider does.")];
  return check.allowed
    ? [note(check.sentence, "GATEHOUSE_ALLOW_VOLATILE_REDIS accepts it; that is for play only.")]
    : [ill(check.sentence, "Gatehouse doesn't start with it.")];
}

const fullAt = 0.8;
const mib = (bytes: number) => `${Math.ceil(bytes / 1024 / 1024)} MiB`;

function memoryFinding({
  usedBytes,
  mostBytes,
}: Extract<RedisFacts, { setUp: string }>): readonly Finding[] {
  if (usedBytes === undefined || mostBytes === undefined) return [];
  if (mostBytes === 0) return [well(`memory: ${mib(usedBytes)} used, no limit`)];
  const what = `memory: ${mib(usedBytes)} of ${mib(mostBytes)} used`;
  return [
    usedBytes < fullAt * mostBytes
      ? well(what)
      : ill(what, "Raise maxmemory: a full Redis takes no requests."),
  ];
}
