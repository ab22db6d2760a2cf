import type { Keys, RedisClient } from "../redis/redis.ts";

/** Versions of the policy, in the order in which processes adopted them: the last one counts. */
export const policyOrder = (key: Keys) => key("policy", "order");

/** How often Slack has reported other members in a group that the policy names. */
export const groupChangesKey = (key: Keys) => key("policy", "groups");
/** Versions of `services` alone, in the order of their adoption. A change of them cancels no request, and every process must follow it. */
export const servicesOrder = (key: Keys) => key("policy", "services");

/** How often `policyText` was replaced. */
export const policyTexts = (key: Keys) => key("policy", "texts");

/** The text of the file by which the current policy was adopted. */
export const policyText = (key: Keys) => key("policy", "text");

/** A version, and its place in the order of adoptions. */
export interface Adopted {
  version: string;
  number: number;
}

/** What all processes look at while they run. */
export interface PolicySigns {
  /** The one that counts; undefined before the first process has started. */
  current: Adopted | undefined;
  /** The services that count; undefined before a process has adopted any. */
  services: Adopted | undefined;
  /** Grows whenever the text of the current file is another one. */
  texts: number;
  /** Grows whenever Slack reports other members in a group that the policy names. */
  groupChanges: number;
}

export async function readPolicySigns(redis: RedisClient, key: Keys): Promise<PolicySigns> {
  const [newest, services, texts, groupChanges] = await Promise.all([
    redis.zrevrange(policyOrder(key), 0, 0, "WITHSCORES"),
    redis.zrevrange(servicesOrder(key), 0, 0, "WITHSCORES"),
    redis.get(policyTexts(key)),
    redis.get(groupChangesKey(key)),
  ]);
  return {
    current: adoptedIn(newest),
    services: adoptedIn(services),
    texts: Number(texts ?? 0),
    groupChanges: Number(groupChanges ?? 0),
  };
}

const adoptedIn = ([version, number]: readonly string[]): Adopted | undefined =>
  version === undefined ? undefined : { version, number: Number(number) };

/** The version that counts and its file's text, as they were at one moment. */
export async function readCurrentPolicy(redis: RedisClient, key: Keys) {
  const answers = await redis
    .multi()
    .zrevrange(policyOrder(key), 0, 0, "WITHSCORES")
    .get(policyText(key))
    .exec();
  const [newest, text] = (answers ?? []).map(([, answer]) => answer);
  return {
    current: adoptedIn(newest as readonly string[]),
    text: typeof text === "string" ? text : "",
  };
}

/** Lets every process forget who is in which group. */
export async function noteGroupChange(redis: RedisClient, key: Keys): Promise<void> {
  await redis.incr(groupChangesKey(key));
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
