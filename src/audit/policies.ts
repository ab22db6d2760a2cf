import { defineScript, type Keys, type RedisClient, redisTimeLua } from "../redis/redis.ts";
import { oweNewsLua, owedNewsKey, type PolicyNews } from "./owed-policy-news.ts";

/**
 * Which process may replace the policy. All have one, the one that was adopted last; its number says when, and one that comes
 * back gets a new number. A process says which number it had before: 0 where it remembers none, one less than its own where
 * its file is the same as then.
 *
 * - A version that no process had yet replaces the current one.
 * - One that was adopted up to the number that the process had before comes back: its file changed, on purpose.
 * - One that was adopted after that doesn't: the process only follows the others, and late. Where it remembers nothing, this
 *   is so for every version but a new one.
 * - A process without a file is never asked (`refuseMissing`).
 *
 * A file that changed and decides the same is news, and no other version.
 *
 * KEYS version, audit, order, news that are owed, text
 * ARGV this process's version, the number of the policy that it had before, its text, '1' where its file alone is news,
 *   changes in words (JSON), news (JSON) or ''
 * → 1 when the current policy changed, number of this process's, current version, its number, the version before, ID of the
 *   news that are owed from now on or ''
 */
const script = `
local before = redis.call('GET', KEYS[1])
if before and redis.call('EXISTS', KEYS[3]) == 0 then redis.call('ZADD', KEYS[3], 1, before) end
local last = tonumber(redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2] or 0)
local known = tonumber(redis.call('ZSCORE', KEYS[3], ARGV[1]) or 0)
local text = redis.call('GET', KEYS[5])
${redisTimeLua}
if before == ARGV[1] then
  local isNews = ARGV[4] == '1' and text ~= ARGV[3]
  if isNews or not text then redis.call('SET', KEYS[5], ARGV[3]) end
  if not isNews or ARGV[6] == '' then return {0, last, before, last, before, ''} end
  local id = 'policy-file-' .. string.format('%d', now)
  ${oweNewsLua("KEYS[4]", "id", "before", "ARGV[6]")}
  return {0, last, before, last, before, id}
end
if before and known > tonumber(ARGV[2]) then return {0, known, before, last, before, ''} end
redis.call('ZADD', KEYS[3], last + 1, ARGV[1])
redis.call('SET', KEYS[1], ARGV[1])
redis.call('SET', KEYS[5], ARGV[3])
if not before then return {0, last + 1, ARGV[1], last + 1, '', ''} end
local record = { what = 'policy', who = 'Gatehouse', from = before, to = ARGV[1] }
local changes = cjson.decode(ARGV[5])
if #changes > 0 then record.changes = changes end
redis.call('XADD', KEYS[2], '*', 'at', string.format('%d', now), 'record', cjson.encode(record))
if ARGV[6] == '' then return {1, last + 1, ARGV[1], last + 1, before, ''} end
local id = 'policy-' .. string.format('%d', last + 1)
${oweNewsLua("KEYS[4]", "id", "before", "ARGV[6]")}
return {1, last + 1, ARGV[1], last + 1, before, id}
`;

export interface Adoption {
  /** This call made the policy the current one, in place of `before`. */
  isNew: boolean;
  before: string;
  /** Of this process's policy. Others with a higher number supersede it. */
  number: number;
  /** The one that counts. */
  current: { version: string; number: number };
  /** Of the news that this call owes. */
  newsId: string | undefined;
}

interface AdoptOptions {
  /** The number of the policy that this process had before; 0 where it remembers none. */
  from?: number;
  /** Of its file. */
  text?: string;
  /** The file changed, and nothing of what decides. */
  isFileNews?: boolean;
  changes?: readonly string[];
  news?: PolicyNews | undefined;
}

/** Makes this policy the current one where it may. Notes it in the audit trail with `changes`, and owes its `news`, once. */
export async function adoptPolicy(
  redis: RedisClient,
  key: Keys,
  version: string,
  { from = 0, text = "", isFileNews = false, changes = [], news }: AdoptOptions = {},
): Promise<Adoption> {
  const run = defineScript(redis, "gatehouseAdoptPolicy", script);
  const policy = (part: string) => key("policy", part);
  const keys = [policy("version"), key("audit"), policy("order"), owedNewsKey(key), policy("text")];
  const answer = (await run(keys, [
    version,
    from,
    text,
    isFileNews ? 1 : 0,
    JSON.stringify(changes),
    news === undefined ? "" : JSON.stringify(news),
  ])) as unknown[];
  const [isNew, number, current, currentNumber, before, newsId] = answer;
  return {
    isNew: isNew === 1,
    number: Number(number),
    current: { version: String(current), number: Number(currentNumber) },
    before: String(before),
    newsId: newsId === "" ? undefined : String(newsId),
  };
}

/**
 * The text of the file by which the current policy was adopted, for saying what replaces it, and where. No process takes its
 * rules from there: what can write to Redis must not be able to write the policy.
 */
export const readPolicyText = (redis: RedisClient, key: Keys) => redis.get(key("policy", "text"));

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
