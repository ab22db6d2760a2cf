import { createPseudonymizer } from "../audit/pseudonym.ts";
import { newestNaming, redactTrail } from "../audit/redact.ts";
import { readStoredPolicy } from "../audit/stored-policy.ts";
import { Trail } from "../audit/trail.ts";
import { UserError } from "../errors.ts";
import { batches } from "../redis/batches.ts";
import { counted } from "../messages/markdown.ts";
import { type Keys, type RedisClient, redisNow } from "../redis/redis.ts";
import { openStoredTexts } from "./stored-texts.ts";

/** Running processes may write the person again while others are erased. */
const mostPasses = 5;
/** What Slack said about a group's members counts for no longer than this (ms). */
const groupsForMs = 60_000;

/** What an interrupted run left behind, in `audit:erasing`. */
interface Progress {
  person: string;
  pseudonym: string;
  /** How many records of the trail were redacted so far. */
  records: number;
}

export interface Erasure {
  redis: RedisClient;
  key: Keys;
  /** A user ID. */
  person: string;
  /** Names of the person to remove wherever they stand as words. */
  names?: readonly string[];
  who: string;
  why: string;
  /** Called after each step, with its name. */
  at?: (step: "begun" | "trail" | "keys") => Promise<void>;
}

/**
 * Removes a person from everything that Redis keeps: their ID and name give way to a pseudonym,
 * `erased-1`, which nothing leads back from. The audit trail stays verifiable, and its last record
 * says who erased how much, and why. A run that was killed is finished by the next one, with the
 * same pseudonym.
 *
 * Throws a UserError while the person is active, and when the trail can't be redacted. Nothing was
 * erased then, unless an earlier run began.
 */
export async function erasePerson(
  erasure: Erasure,
): Promise<{ pseudonym: string; records: number; keys: number } | undefined> {
  const { redis, key, person, names = [], who, why, at = async () => undefined } = erasure;
  const trail = new Trail(redis, key);
  const { erasing } = trail.names;
  const begun = await readProgress(redis, erasing);
  if (begun && begun.person !== person)
    throw new UserError(
      `The erasure of ${begun.person} was interrupted`,
      `finish it first: --person ${begun.person}`,
    );
  const unnamed = createPseudonymizer({ person, pseudonym: "", names });
  if (unnamed(`${who}\n${why}`) !== `${who}\n${why}`)
    throw new UserError("--who and --why are kept, so they must not name the person");
  const texts = openStoredTexts(redis, key);
  const isTrail = (name: string) => name === key("audit") || name.startsWith(key("audit", ""));
  const keysNaming = async () => {
    const keys: string[] = [];
    for (const some of batches([...(await texts.names())])) {
      const isNaming = await Promise.all(
        some.map(async (name) => !isTrail(name) && (await texts.isNamedIn(name, unnamed))),
      );
      keys.push(...some.filter((_, index) => isNaming[index]));
    }
    return keys;
  };

  let naming = await keysNaming();
  await refuseActive(erasure, { naming, unnamed });
  if (!begun && naming.length === 0 && !(await newestNaming(trail, unnamed))) return undefined;

  const pseudonym = begun?.pseudonym ?? (await begin(erasure, erasing));
  await at("begun");
  const redact = createPseudonymizer({ person, pseudonym, names });
  await redactTrail(trail, { redact, who, why, person: pseudonym });
  await at("trail");
  const erased = new Set<string>();
  for (let pass = 0; pass < mostPasses && naming.length > 0; pass += 1) {
    for (const name of naming) {
      await texts.redactKey(name, redact);
      erased.add(name);
      await at("keys");
    }
    naming = await keysNaming();
  }
  if (naming.length > 0)
    throw new UserError(
      `Running processes keep writing this person to ${naming.slice(0, 3).join(", ")}`,
      "run the command again in a minute",
    );
  // Meanwhile a process may have recorded something about the person.
  await redactTrail(trail, { redact, who, why, person: pseudonym });
  const records = (await readProgress(redis, erasing))?.records ?? 0;
  const keys = erased.size;
  const record = { what: "person-erased", who, why, person: pseudonym, records, keys };
  await redis
    .multi()
    .xadd(key("audit"), "*", "at", await redisNow(redis), "record", JSON.stringify(record))
    .del(erasing)
    .exec();
  return { pseudonym, records, keys };
}

async function begin({ redis, key, person }: Erasure, erasing: string): Promise<string> {
  const pseudonym = `erased-${await redis.incr(key("audit", "erased-people"))}`;
  await redis.hset(erasing, { person, pseudonym, records: 0 });
  return pseudonym;
}

async function readProgress(redis: RedisClient, name: string): Promise<Progress | undefined> {
  const { person, pseudonym, records } = await redis.hgetall(name);
  if (person === undefined || pseudonym === undefined) return undefined;
  return { person, pseudonym, records: Number(records) };
}

/**
 * Throws a UserError that names each reason why this person is still active, with what to do. What
 * is under way needs to know its people: the gate compares rights and votes with them.
 */
async function refuseActive(
  { redis, key, person }: Erasure,
  { naming, unnamed }: { naming: readonly string[]; unnamed: (text: string) => string },
): Promise<void> {
  const reasons: string[] = [];
  const policy = (await readStoredPolicy(redis, key))?.text ?? "";
  if (unnamed(policy) !== policy)
    reasons.push("gatehouse.yml names them: remove that, also from its comments, and reload it");
  const generation = (await redis.get(key("policy", "groups"))) ?? "0";
  const now = await redisNow(redis);
  for (const name of naming) {
    const id = name.slice(key.prefix.length + 1);
    if (id.startsWith("user-groups:")) {
      const kept = await redis.hgetall(name);
      const isFresh = kept["generation"] === generation && now - Number(kept["at"]) < groupsForMs;
      if (isFresh)
        reasons.push(
          `the user group ${id.slice("user-groups:".length)}, which gatehouse.yml names, has them as a member: remove them from it in Slack, and come back in a minute`,
        );
    }
    if (id.startsWith("interactions:"))
      reasons.push("something they typed or pressed is being handled: come back in a minute");
    if (id === "reviews")
      reasons.push("a break-glass of theirs waits for its review: let someone sign it");
    if (id === "pins")
      reasons.push(
        "a pin that they proposed is in force: let someone else propose it again, or drop it (/gatehouse pins)",
      );
    for (const [kind, list, words] of underWay) {
      if (!id.startsWith(`${kind}:`)) continue;
      const own = id.slice(kind.length + 1);
      if ((await redis.zscore(key(list, "open"), own)) === null) continue;
      reasons.push(`${words} ${own} is under way: ${await whenOver(redis, name)}`);
    }
  }
  if (reasons.length === 0) return;
  const all = [...new Set(reasons)];
  throw new UserError(
    `${person} is still active, so nothing is erased now (${counted(all.length, "reason")})`,
    all.map((reason) => `\n- ${reason}`).join(""),
  );
}

const underWay = [
  ["request", "requests", "the request"],
  ["roll", "rolls", "the rollout"],
  ["proposal", "proposals", "the proposal"],
] as const;

async function whenOver(redis: RedisClient, name: string): Promise<string> {
  const [state, expiresAt] = await redis.hmget(name, "state", "expiresAt");
  if (state === "unknown") return "record its outcome, and come back";
  if (state !== "draft" || !Number(expiresAt)) return "come back when it has ended";
  return `deny or cancel it, or come back after ${new Date(Number(expiresAt)).toISOString().slice(0, 16)}Z`;
}
