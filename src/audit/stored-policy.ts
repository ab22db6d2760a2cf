import type { Keys, RedisClient } from "../redis/redis.ts";

/**
 * The policy that is in force, as the process stored it that put it in force. It is there to be compared and to be told; no process
 * takes its rules from it, because what can write to Redis must not be able to write the policy.
 */
export interface StoredPolicy {
  /** Grows with every change of what is stored; 0 for what the last release stored. */
  number: number;
  /** The digits that its rules go by, as `policyVersion` makes them. */
  rules: string;
  /** The digits of its services. */
  services: string;
  /** `version` of the file; undefined where it has none. */
  version: number | undefined;
  /** The file, word for word. */
  text: string;
}

export const storedPolicyKey = (key: Keys) => key("policy", "in-force");

/** How often Slack has reported other members in a group that the policy names. */
export const groupChangesKey = (key: Keys) => key("policy", "groups");

/** Undefined before the first process has stored its policy, and in a Redis that was emptied. */
export async function readStoredPolicy(
  redis: RedisClient,
  key: Keys,
): Promise<StoredPolicy | undefined> {
  const {
    number,
    rules,
    services = "",
    version,
    text = "",
  } = await redis.hgetall(storedPolicyKey(key));
  if (number === undefined || rules === undefined) return readOfFormerRelease(redis, key);
  return {
    number: Number(number),
    rules,
    services,
    version: version ? Number(version) : undefined,
    text,
  };
}

/**
 * What the last release stored, until a process of this one stores a policy: the file that both have keeps the name of its rules, so an
 * upgrade cancels nothing.
 */
async function readOfFormerRelease(
  redis: RedisClient,
  key: Keys,
): Promise<StoredPolicy | undefined> {
  const [[rules], [services = ""], text] = await Promise.all([
    redis.zrevrange(key("policy", "order"), 0, 0),
    redis.zrevrange(key("policy", "services"), 0, 0),
    redis.get(key("policy", "text")),
  ]);
  if (rules === undefined) return undefined;
  return { number: 0, rules, services, version: undefined, text: text ?? "" };
}

/** What every process looks at while it runs, without the text. */
export interface PolicySigns {
  /** Of what is stored; 0 where nothing is. */
  number: number;
  /** Grows whenever Slack reports other members in a group that the policy names. */
  groupChanges: number;
}

export async function readPolicySigns(redis: RedisClient, key: Keys): Promise<PolicySigns> {
  const [number, groupChanges] = await Promise.all([
    redis.hget(storedPolicyKey(key), "number"),
    redis.get(groupChangesKey(key)),
  ]);
  return { number: Number(number ?? 0), groupChanges: Number(groupChanges ?? 0) };
}

/** Lets every process forget who is in which group. */
export async function noteGroupChange(redis: RedisClient, key: Keys): Promise<void> {
  await redis.incr(groupChangesKey(key));
}

/**
 * Whether these rules are in force at this moment. If they are, what was requested under other rules was requested before; if they
 * aren't, those others may be ahead of this process.
 */
export async function arePolicyRulesInForce(
  redis: RedisClient,
  key: Keys,
  rules: string,
): Promise<boolean> {
  const inForce =
    (await redis.hget(storedPolicyKey(key), "rules")) ??
    (await readOfFormerRelease(redis, key))?.rules;
  return inForce === rules;
}
