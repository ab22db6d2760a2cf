import type { Keys, RedisClient } from "../redis/redis.ts";

/** Versions of the policy, in the order in which processes adopted them: the last one counts. */
export const policyOrder = (key: Keys) => key("policy", "order");

/** What all processes look at while they run. */
export interface PolicySigns {
  /** The one that counts; undefined before the first process has started. */
  current: { version: string; number: number } | undefined;
  /** Grows whenever Slack reports other members in a group that the policy names. */
  groupChanges: number;
}

export async function readPolicySigns(redis: RedisClient, key: Keys): Promise<PolicySigns> {
  const [newest, groupChanges] = await Promise.all([
    redis.zrevrange(policyOrder(key), 0, 0, "WITHSCORES"),
    redis.get(key("policy", "groups")),
  ]);
  const [version, number] = newest;
  return {
    current: version === undefined ? undefined : { version, number: Number(number) },
    groupChanges: Number(groupChanges ?? 0),
  };
}

/** Lets every process forget who is in which group. */
export async function noteGroupChange(redis: RedisClient, key: Keys): Promise<void> {
  await redis.incr(key("policy", "groups"));
}

/** Whether `version` is known to have been adopted before `ours`: in a rolling change, others may be ahead of this process. */
export async function isOlderPolicy(
  redis: RedisClient,
  key: Keys,
  version: string,
  ours: string,
): Promise<boolean> {
  const [theirs, own] = await redis.zmscore(policyOrder(key), version, ours);
  return theirs != null && own != null && Number(theirs) < Number(own);
}
