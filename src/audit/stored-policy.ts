import type { Keys, RedisClient } from "../redis/redis.ts";

/**
 * The policy in force, as stored by the process that put it in force. It serves for comparison and
 * for messages. No process takes its rules from it, because somebody who can write to Redis must
 * not be able to write the policy.
 */
export interface StoredPolicy {
  /** Grows with every change of what is stored. */
  number: number;
  /** The hex digits that name its rules (`policyVersion`). */
  rules: string;
  /** The hex digits that name its services (`servicesVersion`). */
  services: string;
  /** `version` in the file. Undefined when it has none. */
  version: number | undefined;
  /** The file, verbatim. */
  text: string;
}

export const storedPolicyKey = (key: Keys) => key("policy", "in-force");

/** Counts how often Slack has reported a change of members in a group that the policy names. */
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
  if (number === undefined || rules === undefined) return undefined;
  return {
    number: Number(number),
    rules,
    services,
    version: version ? Number(version) : undefined,
    text,
  };
}

/** The numbers that every process checks while it runs, without the policy's text. */
export interface PolicySigns {
  /** The number of the stored policy. 0 when there is none. */
  number: number;
  /** Grows whenever Slack reports a change of members in a group that the policy names. */
  groupChanges: number;
}

export async function readPolicySigns(redis: RedisClient, key: Keys): Promise<PolicySigns> {
  const [number, groupChanges] = await Promise.all([
    redis.hget(storedPolicyKey(key), "number"),
    redis.get(groupChangesKey(key)),
  ]);
  return { number: Number(number ?? 0), groupChanges: Number(groupChanges ?? 0) };
}

/** Makes every process forget who is in which group. */
export async function noteGroupChange(redis: RedisClient, key: Keys): Promise<void> {
  await redis.incr(groupChangesKey(key));
}

/**
 * Whether these rules are in force at this moment. If they are, a request under other rules is
 * older. If they aren't, those other rules may be newer than this process's.
 */
export async function arePolicyRulesInForce(
  redis: RedisClient,
  key: Keys,
  rules: string,
): Promise<boolean> {
  return (await redis.hget(storedPolicyKey(key), "rules")) === rules;
}
