import * as z from "zod";
import { type StoredPolicy, storedPolicyKey } from "../audit/stored-policy.ts";
import {
  type PolicyChange,
  type PolicyText,
  changeInWords,
  changesBetween,
} from "../config/changing-policy.ts";
import { servicesVersion } from "../config/policy-file.ts";
import type { Log } from "../log/log.ts";
import type { Message } from "../messages/blocks.ts";
import { defineRecord, objectOf } from "../redis/define-record.ts";
import { pendingList } from "../redis/pending.ts";
import { type Keys, type RedisClient, defineScript, redisTimeLua } from "../redis/redis.ts";
import type { Journal } from "../core/request/journal.ts";
import { type PolicyNewsFacts, policyNews } from "../core/cards/policy-news.ts";
import { announceLua, noticeKeptMs, noticeKey } from "../core/deliver/notices.ts";
import { linkTo } from "../core/deliver/permalink.ts";
import { readNames } from "../slack/people/names.ts";
import type { People } from "../slack/people/people.ts";
import type { Web } from "../slack/web.ts";

/**
 * The policy in force. `textInForce` is its file as this process parses it, and undefined when this
 * release can't.
 */
export interface InForce {
  stored: StoredPolicy | undefined;
  textInForce: PolicyText | undefined;
}

/**
 * The outcome for a loaded file: it `replaces` the policy in force, says the `same`, or is
 * `refused`.
 */
export type Claim = "replaces" | "same" | "refused";

/**
 * Decides which of two files counts. With `version`, the higher one does; of one version, the file
 * that came first. Without versions, the one that was loaded last. A file without a version never
 * replaces one that has one.
 */
export function claimOf(own: PolicyText, { stored, textInForce }: InForce): Claim {
  if (stored === undefined) return "replaces";
  const [ours = 0, current = 0] = [own.policy.version, stored.version];
  if (ours > current) return "replaces";
  const isSame =
    own.text === stored.text || (textInForce && decidingChanges(textInForce, own).length === 0);
  if (isSame) return "same";
  return current === 0 ? "replaces" : "refused";
}

/** All differences except for the version itself. */
const decidingChanges = (before: PolicyText, after: PolicyText) =>
  changesBetween(before.policy, after.policy).filter(({ place }) => place !== "version");

/**
 * Whether a process may act by this file, because its rights and services are those in force. A
 * lower version with the same rules may act, so that an upgrade which only raises the version stops
 * no older process. A file with the same version and different content may not.
 */
export function isInForce(own: PolicyText, { stored, textInForce }: InForce): boolean {
  if (stored === undefined) return false;
  const { version } = own.policy;
  const isTwin = version !== undefined && version === stored.version;
  if (isTwin && claimOf(own, { stored, textInForce }) !== "same") return false;
  return hasRulesOf({ stored, textInForce }, own) && hasServicesOf({ stored, textInForce }, own);
}

/**
 * Whether both have the same rules. The hex digits only name rules: another release, which runs
 * beside this one during an upgrade, may compute them differently. So the parsed text in force is
 * compared, too.
 */
export const hasRulesOf = ({ stored, textInForce }: InForce, own: PolicyText): boolean =>
  stored?.rules === own.policyVersion || textInForce?.policyVersion === own.policyVersion;

export const hasServicesOf = ({ stored, textInForce }: InForce, own: PolicyText): boolean => {
  const services = servicesVersion(own.policy);
  return (
    stored?.services === services ||
    (textInForce && servicesVersion(textInForce.policy)) === services
  );
};

/** Why this file isn't put in force, and what it needs. Undefined when its version allows it. */
export function versionProblem(
  { version }: { version?: number | undefined },
  stored: Pick<StoredPolicy, "version"> | undefined,
  shown: string,
): string | undefined {
  const current = stored?.version;
  if (current === undefined || (version ?? 0) > current) return undefined;
  if (version === undefined)
    return `${shown} has no version and needs one above ${current}, which is in force`;
  if (version === current)
    return `${shown} has version ${version}, which is in force with another content, and needs a higher one`;
  return `${shown} has version ${version} and needs one above ${current}, which is in force`;
}

/** `12 (1f2e3d4c5b6a)`, or only the hex digits when the file has no version. */
export const policyName = (rules: string, version: number | undefined): string =>
  version === undefined ? rules : `${version} (${rules})`;

/** The content of the announcement, apart from the names of the two policies. */
interface PolicyNews extends Pick<PolicyNewsFacts, "changes" | "canceledCount"> {
  /** The first of the requests that the new policy cancels. */
  canceled: readonly string[];
}

/** The facts of an announcement, which is rendered when it is posted. */
interface AnnouncedFacts extends Pick<PolicyNewsFacts, "before" | "after" | "isSameRules"> {
  news: PolicyNews;
}

export const announcedFacts = defineRecord({
  name: "news of a policy",
  schema: objectOf<AnnouncedFacts>({
    before: z.string().exactOptional(),
    after: z.string(),
    isSameRules: z.boolean(),
    news: objectOf<PolicyNews>({
      changes: z
        .array(
          objectOf<PolicyChange>({
            place: z.string(),
            removed: z.array(z.string()),
            added: z.array(z.string()),
            isReplaced: z.boolean(),
            waits: z.boolean(),
          }),
        )
        .optional(),
      canceled: z.array(z.string()),
      canceledCount: z.number(),
    }),
  }),
});

/** The most changes that a record of the audit trail lists, because records are kept forever. */
const maxNoted = 50;

interface AdoptOptions {
  /** The policy that is replaced, as this process knows it. */
  before: InForce;
  /** The requests that wait under the former policy: the first ones, and the number of all. */
  canceled?: readonly string[];
  canceledCount?: number;
  /** The channels where it is announced. */
  channels?: readonly (string | undefined)[];
  /** Called with the ID of an announced notice, so that it is posted now. */
  wakeNotice?(id: string): void;
}

/**
 * Stores the policy in force.
 *
 * KEYS the policy in force, audit, pending
 * ARGV the number of what is replaced (0: nothing), rules, services, version or '', text, record
 * for the audit trail or '', facts (JSON) or '', channels (JSON), prefix of notices, how long they
 * are kept (ms)
 * → {its number, IDs of its notices}; empty when another process was faster
 */
const adoptScript = `${redisTimeLua}${announceLua}
local number = tonumber(redis.call('HGET', KEYS[1], 'number') or 0)
if number ~= tonumber(ARGV[1]) then return {} end
local announced = {}
number = number + 1
redis.call('HSET', KEYS[1], 'number', number, 'rules', ARGV[2], 'services', ARGV[3], 'version', ARGV[4], 'text', ARGV[5])
if ARGV[6] ~= '' then
  redis.call('XADD', KEYS[2], '*', 'at', string.format('%d', now), 'record', ARGV[6])
end
if ARGV[7] ~= '' then
  for _, channel in ipairs(cjson.decode(ARGV[8])) do
    local id = 'policy-' .. number .. '-' .. channel
    local notice = cjson.encode({ id = id, channelId = channel, facts = ARGV[7] })
    announce(KEYS[3], ARGV[9] .. id, id, notice, ARGV[10], 0)
    announced[#announced + 1] = id
  end
end
return {number, announced}
`;

/**
 * Puts this policy in force. Resolves with undefined when another process was faster; the caller
 * then looks again. Its record in the audit trail and its announcement are written in the same
 * step, because the process may die right after it. A change of the version alone isn't announced.
 */
export async function adoptPolicy(
  redis: RedisClient,
  key: Keys,
  own: PolicyText,
  { before, canceled = [], canceledCount = 0, channels = [], wakeNotice }: AdoptOptions,
): Promise<StoredPolicy | undefined> {
  const { stored, textInForce } = before;
  const { text } = own;
  const { version } = own.policy;
  const rules = stored && hasRulesOf(before, own) ? stored.rules : own.policyVersion;
  const services =
    stored && hasServicesOf(before, own) ? stored.services : servicesVersion(own.policy);
  const changes = textInForce && decidingChanges(textInForce, own);
  const decides = stored && (stored.rules !== rules || stored.services !== services);
  const record = decides && {
    what: "policy",
    who: "Gatehouse",
    from: stored.rules,
    to: rules,
    ...(textInForce && {
      changes: changesBetween(textInForce.policy, own.policy).slice(0, maxNoted).map(changeInWords),
    }),
  };
  const news: PolicyNews = { changes, canceled, canceledCount };
  const isNews = stored === undefined || changes === undefined || changes.length > 0;
  const facts = isNews && {
    before: stored && policyName(stored.rules, stored.version),
    after: policyName(rules, version),
    isSameRules: stored?.rules === rules,
    news,
  };
  const run = defineScript(redis, "gatehouseAdoptPolicy", adoptScript);
  const [number, announced = []] = (await run(
    [storedPolicyKey(key), key("audit"), pendingList(key)],
    [
      stored?.number ?? 0,
      rules,
      services,
      version ?? "",
      text,
      record ? JSON.stringify(record) : "",
      facts ? announcedFacts.write(facts) : "",
      JSON.stringify([...new Set(channels)].filter((channel) => channel !== undefined)),
      noticeKey(key, ""),
      noticeKeptMs,
    ],
  )) as [number?, string[]?];
  if (number === undefined) return undefined;
  for (const id of announced) wakeNotice?.(id);
  return { number, rules, services, version, text };
}

/**
 * The message about an adopted policy, with Slack's names and links. It is rendered when it is
 * posted, because adopting a policy can't wait for Slack. Throws for facts that can't be read: of a
 * policy that nobody can name nothing is said.
 */
export async function renderPolicyNews(
  facts: string,
  on: {
    store: Pick<Journal, "getMany">;
    web: Web;
    log: Log;
    person: Parameters<typeof readNames>[1]["person"];
    groupNames: People["groupNames"];
  },
): Promise<Message> {
  const announced = announcedFacts.parse(facts, "facts of a notice");
  if (!announced) throw new Error("the news of a policy can't be read");
  const { news, ...names } = announced;
  const { changes, canceled, canceledCount } = news;
  const first = await on.store.getMany(canceled);
  const named = changes?.flatMap(({ added, removed }) => [...added, ...removed]) ?? [];
  const [links, nameOf] = await Promise.all([
    Promise.all(first.map(({ delivered }) => linkTo(delivered.card, on))),
    readNames(named, on),
  ]);
  return policyNews({
    ...names,
    changes,
    canceled: first.map((request, at) => ({ request, link: links[at] })),
    canceledCount,
    nameOf,
  });
}
