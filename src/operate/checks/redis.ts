import { type Config } from "../../config/config.ts";
import { ConfigError } from "../../config/config-error.ts";
import { parseRedisUrl } from "../../config/redis-address.ts";
import { messageOf, withHint } from "../../errors.ts";
import {
  checkRedis,
  type RedisCheck,
  judgeMemory,
  memoryIn,
  parseInfo,
  storageOf,
  storageProblems,
} from "../../redis/check.ts";
import {
  type Keys,
  type RedisClient,
  redisTrouble,
  tlsHint,
  withRedis,
  writeRefusal,
} from "../../redis/redis.ts";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type CertificateFacts,
  earliestEnd,
  judgeCertificate,
  judgeOwnCertificate,
  lookAtCertificate,
  tlsRefusal,
} from "./certificate.ts";
import { describeOwner, isTokenOf, ownerHint, readOwner } from "../installation.ts";
import { type Finding, ill, note, well } from "../../messages/finding.ts";

/**
 * Writes a key where our keys are, as the actual work does. A PING isn't enough: a Redis that takes
 * no writes answers it, too.
 */
async function writeToRedis(redis: RedisClient, key: Keys): Promise<void> {
  await redis.set(key("probe"), "1", "PX", 60_000);
}

/**
 * How long the reason why Redis takes no write is looked for (ms). After a failover, it takes a
 * moment until the primary is found.
 */
const reasonWithinMs = 800;
const reasonEveryMs = 100;

/**
 * The error that a write met, or undefined when it succeeded. The refusal of a Redis that answers
 * is preferred to a lost connection.
 */
export async function problemOfWriting(redis: RedisClient, key: Keys): Promise<unknown> {
  const until = performance.now() + reasonWithinMs;
  for (;;) {
    const error: unknown = await writeToRedis(redis, key).then(
      () => undefined,
      (problem: unknown) => problem,
    );
    const isKnown = error === undefined || writeRefusal(error) !== undefined;
    if (isKnown || redisTrouble(error) === undefined || performance.now() > until) return error;
    await sleep(reasonEveryMs);
  }
}

/** Why Redis takes no writes now, in words. */
export async function redisProblem(redis: RedisClient, key: Keys): Promise<string | undefined> {
  const error = await problemOfWriting(redis, key);
  if (error === undefined) return undefined;
  return redisTrouble(error) ?? `Redis refuses to write: ${messageOf(error)}`;
}

interface Tls {
  /** The certificate at the first address in REDIS_URL. Undefined when no handshake completed. */
  certificate: CertificateFacts | undefined;
  /** When the certificate of REDIS_CERT_FILE expires. */
  ownValidTo: number | undefined;
  /** Whether CA_FILE is set. */
  hasAuthorities: boolean;
  now: number;
}

export type RedisFacts = ({ unusable: string } | Awaited<ReturnType<typeof factsOf>>) & {
  /** Undefined without TLS. */
  tls?: Tls;
};

/** Looks at Redis. It writes one key of Gatehouse's own, which expires within a minute. */
export async function lookAtRedis(config: Config, now: number): Promise<RedisFacts> {
  const { redisUrl, authorities } = config;
  const { tls, nodes } = parseRedisUrl(redisUrl);
  const [first] = nodes;
  const shown = config.redisCertificate;
  const common = tls &&
    first && {
      tls: {
        certificate: await lookAtCertificate({ ...first, ...shown }, now),
        ownValidTo: earliestEnd(shown?.cert),
        hasAuthorities: authorities !== undefined,
        now,
      },
    };
  try {
    const facts = await withRedis(
      redisUrl,
      { namespace: config.redisNamespace, certificate: () => config.redisCertificate },
      (redis, key) => factsOf(redis, key, config),
    );
    return { ...facts, ...common };
  } catch (error) {
    const isConfig = error instanceof ConfigError;
    const refusal = common && first ? await tlsRefusal({ ...first, ...shown }) : undefined;
    const hint = refusal && tlsHint(refusal);
    if (!isConfig && hint !== undefined)
      return { unusable: `Redis at ${first?.host} can't be used: ${hint}`, ...common };
    return { unusable: isConfig ? error.problems.join("; ") : withHint(error, "; "), ...common };
  }
}

/** Judges the server's certificate, and the one that Gatehouse presents. */
function tlsFindings({ tls }: RedisFacts): readonly Finding[] {
  if (!tls) return [];
  const { certificate, ownValidTo, hasAuthorities, now } = tls;
  const variables = { address: "REDIS_URL", hasAuthorities };
  const soon = "once it expires, Redis can't be reached";
  return [
    ...(certificate ? [judgeCertificate(certificate, variables, now, soon)] : []),
    ...judgeOwnCertificate("REDIS_CERT_FILE", ownValidTo, now),
  ];
}

const modes = { single: "alone", cluster: "Cluster", sentinel: "Sentinel" } as const;

async function factsOf(redis: RedisClient, key: Keys, config: Config) {
  const times = await Array.fromAsync({ length: 5 }, async () => {
    const began = performance.now();
    await redis.ping();
    return performance.now() - began;
  });
  const info = parseInfo(await redis.info().catch(() => ""));
  const { mode, shown } = parseRedisUrl(config.redisUrl);
  const owner = await readOwner(redis, key).catch(() => undefined);
  return {
    /** The Slack app that uses these keys, and whether it has another bot token than this process. */
    owner: owner && {
      app: describeOwner(owner),
      isTokenOther: !isTokenOf(owner, key, config.slack.botToken),
    },
    prefix: key.prefix,
    hint: ownerHint(key),
    /** The address and the kind of setup: `redis:6379, alone`. */
    setUp: `${shown}, ${info.get("cluster_enabled") === "1" ? "Cluster" : modes[mode]}`,
    version: info.get("redis_version"),
    /** The server's own name and version, where it is no Redis: `Valkey 8.1.3`. */
    called: info.has("valkey_version") ? `Valkey ${info.get("valkey_version")}` : undefined,
    roundTripMs: times.toSorted((a, b) => a - b)[2] ?? 0,
    check: await checkRedis(redis, { allowVolatile: config.allowVolatileRedis }),
    storage: storageProblems(await storageOf(redis), config.redisReplicas),
    /** The error that writing one of Gatehouse's own keys met. */
    writeProblem: await problemOfWriting(redis, key),
    memory: memoryIn(info),
  };
}

const oldest = 6.2;
const slowMs = 20;

const closer =
  "Each request needs about ten round trips: move Redis closer, or find out why it is slow.";

/** The next step when Redis takes no write, by `writeRefusal`. */
const writeMends = {
  full: "Raise maxmemory, or free what else is in it: until then nothing can be requested.",
  disk: "Free space on its disk, or read its log: until then nothing can be requested.",
  "read-only": "Name its primary in REDIS_URL, or all its sentinels.",
  replicas: "Bring its replicas back, or lower min-replicas-to-write.",
  other:
    "Its user needs the keys of REDIS_NAMESPACE, {gatehouse}:* by default, and the commands in compose.yaml.",
};

function writeFinding(error: unknown): Finding {
  if (error === undefined) return well("its user may write Gatehouse's keys");
  const problem = redisTrouble(error);
  const mend = writeMends[writeRefusal(error) ?? "other"];
  if (problem === undefined) return ill(`it refuses to write: ${messageOf(error)}`, mend);
  return ill(writeRefusal(error) === undefined ? problem : `${problem} and refuses to write`, mend);
}

export function judgeRedis(facts: RedisFacts): readonly Finding[] {
  if ("unusable" in facts)
    return [
      ill(facts.unusable, "Nothing can be done until Redis answers: check REDIS_URL and Redis."),
      ...tlsFindings(facts),
    ];
  const { setUp, version, roundTripMs, check, storage, writeProblem } = facts;
  const server = facts.called ?? (version === undefined ? undefined : `Redis ${version}`);
  const known = setUp + (server === undefined ? "" : `, ${server}`);
  const isOld = version !== undefined && Number.parseFloat(version) < oldest;
  const trip = `round trip: ${roundTripMs.toFixed(1)} ms`;
  const memory = facts.memory && judgeMemory(facts.memory);
  return [
    isOld ? ill(known, `Use Redis ${oldest} or newer, or Valkey.`) : well(known),
    roundTripMs > slowMs ? note(trip, closer) : well(trip),
    writeFinding(writeProblem),
    ownerFinding(facts),
    ...tlsFindings(facts),
    keptFinding(check),
    ...storage.map(({ sentence, stops }) =>
      stops
        ? ill(sentence, "Bring the replicas back, or lower REDIS_REPLICAS.")
        : note(sentence, "docs/promise.md says what may be lost at worst."),
    ),
    ...(memory ? [memoryFinding(memory, writeProblem)] : []),
  ];
}

function ownerFinding({
  owner,
  prefix,
  hint,
}: Pick<Extract<RedisFacts, { setUp: string }>, "owner" | "prefix" | "hint">): Finding {
  if (!owner) return well(`nobody uses ${prefix} yet`);
  const used = `${prefix} is used by the Slack app ${owner.app}`;
  if (!owner.isTokenOther) return well(used);
  return note(
    `${used}, which had another bot token`,
    `Where this is another app, Gatehouse doesn't start: ${hint}.`,
  );
}

/** A Redis that is full already says so by refusing to write. */
const memoryFinding = (
  { words, isNearlyFull, mend }: ReturnType<typeof judgeMemory>,
  writeProblem: unknown,
): Finding =>
  isNearlyFull && writeRefusal(writeProblem) !== "full" ? ill(words, mend) : well(words);

/** Judges whether Redis keeps its data. */
function keptFinding(check: RedisCheck): Finding {
  if (check.kind === "ok") return well("keeps everything on disk, evicts nothing");
  const { sentence } = check;
  if (check.kind === "unchecked")
    return note(sentence, "A managed Redis may not say; its provider does.");
  return check.allowed
    ? note(sentence, "GATEHOUSE_ALLOW_VOLATILE_REDIS accepts it; that is for play only.")
    : ill(sentence, "Gatehouse doesn't start with it.");
}
