import { defineScript, type Keys, type RedisClient, redisTimeLua } from "../redis/redis.ts";
import { oweNewsLua, owedNewsKey, type PolicyNews } from "./owed-policy-news.ts";

/**
 * The policy that was adopted last is the current one, and its number says when. A policy that comes back gets a new number;
 * a process that only comes closer to the current one, from an older policy to one that others have had already, gives none.
 *
 * KEYS version, audit, order, news that are owed
 * ARGV this process's version, the number of the policy that it had before or '', changes in words (JSON), news (JSON) or ''
 * → 1 when the current policy changed, number of this process's, current version, its number, the version before
 */
const script = `
local before = redis.call('GET', KEYS[1])
if before and redis.call('EXISTS', KEYS[3]) == 0 then redis.call('ZADD', KEYS[3], 1, before) end
local last = tonumber(redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2] or 0)
local known = tonumber(redis.call('ZSCORE', KEYS[3], ARGV[1]) or 0)
if before == ARGV[1] then return {0, last, before, last, before} end
if before and ARGV[2] ~= '' and known > tonumber(ARGV[2]) then return {0, known, before, last, before} end
redis.call('ZADD', KEYS[3], last + 1, ARGV[1])
redis.call('SET', KEYS[1], ARGV[1])
if not before then return {0, last + 1, ARGV[1], last + 1, ''} end
${redisTimeLua}
local record = { what = 'policy', who = 'Gatehouse', from = before, to = ARGV[1] }
local changes = cjson.decode(ARGV[3])
if #changes > 0 then record.changes = changes end
redis.call('XADD', KEYS[2], '*', 'at', string.format('%d', now), 'record', cjson.encode(record))
if ARGV[4] ~= '' then
${oweNewsLua("KEYS[4]", "'policy-' .. string.format('%d', last + 1)", "before", "ARGV[4]")}
end
return {1, last + 1, ARGV[1], last + 1, before}
`;

export interface Adoption {
  /** This call made the policy the current one, in place of `before`; its news are owed as `newsIdOf` of it. */
  isNew: boolean;
  before: string;
  /** Of this process's policy. Others with a higher number supersede it. */
  number: number;
  /** The one that counts. */
  current: { version: string; number: number };
}

/**
 * Makes this policy the current one, unless `from`, the number of the one that this process had before, shows that it only
 * follows the others. Notes the change once in the audit trail, with `changes` in words, and owes its `news` once.
 */
export async function adoptPolicy(
  redis: RedisClient,
  key: Keys,
  version: string,
  {
    from,
    changes = [],
    news,
  }: {
    from?: number | undefined;
    changes?: readonly string[];
    news?: PolicyNews | undefined;
  } = {},
): Promise<Adoption> {
  const run = defineScript(redis, "gatehouseAdoptPolicy", script);
  const keys = [key("policy", "version"), key("audit"), key("policy", "order"), owedNewsKey(key)];
  const owed = news === undefined ? "" : JSON.stringify(news);
  const answer = (await run(keys, [
    version,
    from ?? "",
    JSON.stringify(changes),
    owed,
  ])) as unknown[];
  const [isNew, number, current, currentNumber, before] = answer;
  return {
    isNew: isNew === 1,
    number: Number(number),
    current: { version: String(current), number: Number(currentNumber) },
    before: String(before),
  };
}

export const newsIdOf = ({ number }: Adoption) => `policy-${number}`;

/** What all processes look at while they run. */
export interface PolicySigns {
  /** The one that counts; undefined before the first process has started. */
  current: { version: string; number: number } | undefined;
  /** Grows whenever Slack reports other members in a group that the policy names. */
  groupChanges: number;
}

export async function readPolicySigns(redis: RedisClient, key: Keys): Promise<PolicySigns> {
  const [newest, groupChanges] = await Promise.all([
    redis.zrevrange(key("policy", "order"), 0, 0, "WITHSCORES"),
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
  const [theirs, own] = await redis.zmscore(key("policy", "order"), version, ours);
  return theirs != null && own != null && Number(theirs) < Number(own);
}
