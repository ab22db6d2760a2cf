import { hash } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import {
  type Adopted,
  type PolicySigns,
  policyOrder,
  policyText,
  policyTexts,
  readCurrentPolicy,
  readPolicySigns,
  servicesOrder,
} from "../audit/policy-order.ts";
import { type Wanted, changeInWords, changesBetween } from "../config/changing-policy.ts";
import { type Config, ConfigError } from "../config/config.ts";
import { servicesVersion } from "../config/policy-file.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import type { Telemetry } from "../log/telemetry.ts";
import type { Message } from "../messages/message.ts";
import { type Keys, type RedisClient, defineScript, redisTimeLua } from "../redis/redis.ts";
import { repeatHere } from "../redis/repeat.ts";
import { privateFile } from "../regular-file.ts";
import type { Journal } from "../requests/journal/journal.ts";
import {
  type PolicyNewsFacts,
  policyKeptNews,
  policyNews,
} from "../requests/render/policy-news.ts";
import { type Announce, announceLua, noticeKeptMs, noticeKeys } from "../slack/deliver/deliver.ts";
import { linkTo } from "../slack/deliver/permalink.ts";
import { readNames } from "../slack/people/names.ts";
import type { People } from "../slack/people/people.ts";
import type { Web } from "../slack/web.ts";
import { parseJson } from "../text/parse-json.ts";

interface KeeperOptions {
  config: Config;
  redis: RedisClient;
  key: Keys;
  log: Log;
  telemetry: Telemetry;
  store: Journal;
  people: Pick<People, "forget">;
  announce: Announce;
  /** Failpoint. */
  at: ((point: "policy-adopted", version: string) => Promise<void>) | undefined;
}

/** Files reach processes one after the other: 15 s as heartbeats usually are. */
const graceInBeats = 5;
const maxNamed = 10;
const maxRead = 1000;
/** In the audit trail, which keeps them forever. */
const maxNoted = 50;

/**
 * A process without a file has no policy to give: it may start where no process had one either, so that Gatehouse can be tried
 * out, and adopts nothing. Throws ConfigError.
 */
export async function refuseMissing(
  on: Pick<KeeperOptions, "config" | "redis" | "key" | "log">,
): Promise<void> {
  const { missingAt } = on.config.policyFile;
  if (missingAt === undefined) return;
  const { current } = await readPolicySigns(on.redis, on.key);
  if (current !== undefined)
    throw new ConfigError([
      `GATEHOUSE_CONFIG: ${missingAt} is missing, and other processes had a policy (version ${current.version}): put their file there, or name its place in GATEHOUSE_CONFIG`,
    ]);
  const why = "everyone can view and no one can change anything";
  on.log.warn("policy.missing", { path: missingAt, why });
}

/**
 * Makes the policy of this process the current one where it may (`adoptPolicy`), and follows the others from then on
 * (decisions 052, 053, 099).
 */
export async function keepPolicy(on: KeeperOptions) {
  const { config, redis, key, log, telemetry } = on;
  const { policyFile: file } = config;
  const beatMs = config.policy.timing.heartbeatMs;
  const listeners: (() => void)[] = [];
  let memory = file.missingAt === undefined ? recall(config) : undefined;
  let current: PolicySigns["current"];
  /** The current rules as this release calls them. */
  let currentRules: string | undefined;
  /** How often the current file's text had been replaced when this process last read it. */
  let textsRead: number | undefined;
  let areServicesOld = false;
  let supersededAt: number | undefined;
  let isToldStill = false;
  let groupChanges: number | undefined;
  /** Of the file, as the audit channel was last told. */
  let toldProblems: readonly string[] = [];

  /** Whether the file is read and not adopted yet, because Redis was away. */
  const isAdoptionDue = () => file.missingAt === undefined && memory?.text !== file.text;

  async function adopt(): Promise<void> {
    const { text } = file;
    // What this process had before; undefined where its file is the same as then
    const former = memory && memory.text !== text ? file.parse(memory.text) : undefined;
    const { current: counts, replaced } = await readCurrent();
    const version = config.policyVersion;
    const changes = replaced && changesBetween(replaced.policy, file.asWritten);
    const waiting = counts?.version === version ? [] : await waitingUnderOthers(version);
    const isSameText = memory?.text === text;
    const placeBefore = (number = 0) => Math.max(0, number - (isSameText ? 1 : 0));
    const adoption = await adoptPolicy(redis, key, version, {
      from: placeBefore(memory?.number),
      services: { version: ownServices(), from: placeBefore(memory?.servicesNumber) },
      text,
      isFileNews: former?.policyVersion === file.ownVersion && changes?.length !== 0,
      changes: changes?.slice(0, maxNoted).map(changeInWords) ?? [],
      news: { changes, canceled: waiting.slice(0, maxNamed), canceledCount: waiting.length },
      // Whoever moves the audit channel is seen in the one that was watched
      channels: [former?.policy, replaced?.policy, config.policy].flatMap(
        (policy) => policy?.audit?.channel ?? [],
      ),
    });
    if (adoption.isNew) await on.at?.("policy-adopted", version);
    const { current: services, number: servicesNumber } = adoption.services ?? {};
    remember({ text, number: adoption.number, servicesNumber });
    compare({ current: adoption.current, services });
  }

  const ownServices = () => servicesVersion(file.asWritten);

  /**
   * What counts for all, and the file by which it does. The version is a name for rules: a release before may have made it in
   * another way, or filled in other defaults. Where the text of that file says what this process' own says, both have the same
   * rules, and this process goes by that name.
   */
  async function readCurrent() {
    const { current: counts, text: theirs } = await readCurrentPolicy(redis, key);
    const replaced = file.parse(theirs);
    currentRules = replaced?.policyVersion ?? counts?.version;
    if (counts !== undefined && currentRules === file.ownVersion) file.goBy(counts.version);
    return { current: counts, replaced, text: theirs };
  }

  /** IDs of drafts, and of what was authorized and not sent: none of them runs. Listed while they still wait. */
  async function waitingUnderOthers(version: string): Promise<readonly string[]> {
    const open = await on.store.getMany(await on.store.recentIds({ open: true }, maxRead));
    return open
      .filter(({ state }) => state === "draft" || state === "authorized")
      .filter(({ record }) => record.policyVersion !== version)
      .map(({ record }) => record.id);
  }

  function remember(now: PolicyMemory): void {
    const { text, number, servicesNumber } = now;
    if (
      memory?.text === text &&
      memory.number === number &&
      memory.servicesNumber === servicesNumber
    )
      return;
    memory = now;
    try {
      writeFileSync(`${memoryFile(config)}.new`, JSON.stringify(now), privateFile);
      renameSync(`${memoryFile(config)}.new`, memoryFile(config));
    } catch (error) {
      // As if it were never known: no reason to stop
      log.warn("policy.not-remembered", { why: messageOf(error) });
    }
  }

  function compare({ current: counts, services }: Pick<PolicySigns, "current" | "services">): void {
    const own = config.policyVersion;
    current = counts;
    areServicesOld = services !== undefined && services.version !== ownServices();
    if (counts === undefined || (counts.version === own && !areServicesOld)) {
      if (supersededAt !== undefined) log.info("policy.current-again", { version: own });
      supersededAt = undefined;
      isToldStill = false;
      // Another process may have brought it back, under another number
      if (counts !== undefined && file.missingAt === undefined && !isAdoptionDue())
        remember({ text: file.text, number: counts.number, servicesNumber: services?.number });
    } else if (supersededAt === undefined) {
      supersededAt = performance.now();
      log.warn("policy.superseded", {
        version: own,
        current: counts.version,
        ...(areServicesOld && { services: ownServices(), currentServices: services?.version }),
      });
    }
    const still = standstill();
    telemetry.policyInfo.reset();
    telemetry.policyInfo.set({ version: own }, 1);
    telemetry.policySuperseded.set(still === undefined ? 0 : 1);
    if (still === undefined || isToldStill) return;
    isToldStill = true;
    log.error("policy.standstill", { why: still });
  }

  /** Why this process may change nothing now, in words; undefined while its policy is the one that counts. */
  function standstill(): string | undefined {
    if (supersededAt === undefined) return undefined;
    if (performance.now() - supersededAt < graceInBeats * beatMs) return undefined;
    const state = file.missingAt === undefined ? "isn't that one" : "is missing";
    const problem = placeOf(file.problems[0] ?? `its policy file ${state}`);
    return areServicesOld && current?.version === config.policyVersion
      ? `the services in gatehouse.yml were replaced, and this process doesn't have the new ones: ${problem}`
      : `version ${current?.version ?? ""} of the policy replaced ${config.policyVersion}, and this process doesn't have it: ${problem}`;
  }

  /** Reads the file; takes what it says, or tells why not. */
  async function read(options: Wanted = {}): Promise<void> {
    const news = file.reread(options);
    telemetry.policyUnusable.set(file.problems.length > 0 ? 1 : 0);
    if (news === undefined) return;
    telemetry.policyReloads.inc({ outcome: news.is });
    if (news.is === "kept")
      log.warn("policy.kept", { version: config.policyVersion, problems: news.problems });
    else
      log.info("policy.changed", {
        before: news.before.policyVersion,
        version: news.after.policyVersion,
        changes: changesBetween(news.before.policy, news.after.policy).map(changeInWords),
      });
    await settle();
  }

  /** Adopts what was read, and tells what can't be used: both may wait for Redis. */
  async function settle(): Promise<void> {
    if (isAdoptionDue()) {
      await adopt();
      for (const listener of listeners) listener();
    }
    const { problems } = file;
    if (problems.length === 0 || problems === toldProblems) return;
    const print = hash("sha256", problems.join("\n")).slice(0, 12);
    const message = policyKeptNews(config.policyVersion, problems);
    const channelId = config.policy.audit?.channel;
    const id = `policy-kept-${memory?.number ?? 0}-${print}`;
    if (channelId !== undefined) await on.announce({ id, channelId, message });
    toldProblems = problems;
  }

  async function round(): Promise<void> {
    if (config.watchesPolicy && file.isReplaced()) await read();
    await settle();
    const signs = await readPolicySigns(redis, key);
    if (groupChanges !== undefined && groupChanges !== signs.groupChanges) {
      on.people.forget();
      log.info("people.groups-changed", {});
    }
    groupChanges = signs.groupChanges;
    if (signs.texts !== textsRead || signs.current?.version !== config.policyVersion) {
      const { text } = await readCurrent();
      textsRead = signs.texts;
      // Where the others reread theirs, this one may have been replaced as well
      if (file.missingAt === undefined) await read({ onlyText: text });
    }
    compare(signs);
    if (supersededAt !== undefined && current !== undefined)
      await read({ onlyVersion: currentRules });
  }

  const later = (error: unknown) => log.warn("policy.later", { why: messageOf(error) });
  // What this process remembers of people is younger than this count
  ({ groupChanges } = await readPolicySigns(redis, key));
  if (file.missingAt === undefined) await adopt();

  let turn = Promise.resolve();
  /** A signal may come while a round runs. */
  function inTurn(act: () => Promise<void>): Promise<void> {
    turn = turn.then(act).catch(later);
    return turn;
  }
  const repeated = repeatHere("policy", beatMs, () => inTurn(round), log);
  return {
    standstill,
    /** Rereads the file. Never rejects. */
    reload: () => inTurn(() => read()),
    /** Called whenever other rules have come into force here. */
    onChanged: (listener: () => void) => void listeners.push(listener),
    close: () => repeated.close(),
  };
}

/** `gatehouse.yml line 3`: the rest may name what not everybody sees, and stands in the log. */
export function placeOf(problem: string): string {
  const [place = "", ...rest] = problem.split(": ");
  return rest.length > 0 ? `${place} can't be used` : problem;
}

const memoryShape = z.object({
  text: z.string(),
  number: z.int(),
  servicesNumber: z.int().optional(),
});
/** What this process last had for its policy: the file's text, and the numbers under which it and its services were adopted. */
type PolicyMemory = z.output<typeof memoryShape>;

const memoryFile = ({ dataDir }: Pick<Config, "dataDir">) => path.join(dataDir, "policy.json");

/**
 * In the directory of the process, so that a start can tell a file that was changed meanwhile from one that wasn't
 * replaced: only a change may supersede what the others have. Undefined without one.
 */
function recall(config: Pick<Config, "dataDir">): PolicyMemory | undefined {
  try {
    return memoryShape.safeParse(parseJson(readFileSync(memoryFile(config), "utf8"))).data;
  } catch {
    return undefined;
  }
}

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
 * A file that changed and decides the same is news, and no other version. What is news is on Slack's outbox when it counts: the
 * process may die right after.
 *
 * Services have an order of their own by the same rules, and come with a new version of the policy.
 *
 * The text is there for saying what replaces it, and where, and for telling whether a version under another name has the rules of
 * this process. No process takes its rules from it: what can write to Redis must not be able to write the policy.
 *
 * KEYS order, text, audit, notices, order of services, how often the text changed
 * ARGV this process's version, the number of the policy that it had before, its text, '1' where its file alone is news,
 *   changes in words (JSON), news (JSON), channels (JSON), prefix of notices, how long they are kept (ms),
 *   version of its services or '', the number of those that it had before
 * → 1 when the current policy changed, number of this process's, current version, its number, the same three of services
 */
const adoptScript = `${redisTimeLua}${announceLua}
local version, text, services = ARGV[1], ARGV[3], ARGV[10]
-- What counted before, the last number, this one's own, and whether it would count from now on
local function placeIn(order, of, from)
  local newest = redis.call('ZREVRANGE', order, 0, 0, 'WITHSCORES')
  local before, last = newest[1], tonumber(newest[2] or 0)
  local known = tonumber(redis.call('ZSCORE', order, of) or 0)
  return before, last, known, before ~= of and not (before and known > tonumber(from))
end
local before, last, known, isNew = placeIn(KEYS[1], version, ARGV[2])
local hadServices, lastServices, knownServices, areNew = placeIn(KEYS[5], services, ARGV[11])
if isNew then
  last = last + 1
  known = last
  redis.call('ZADD', KEYS[1], last, version)
end
local isCurrent = isNew or before == version
if services ~= '' and isCurrent and services ~= hadServices and (areNew or isNew) then
  lastServices = lastServices + 1
  knownServices = lastServices
  redis.call('ZADD', KEYS[5], lastServices, services)
end
local countingServices = redis.call('ZREVRANGE', KEYS[5], 0, 0)[1]
local haveServicesChanged = hadServices and countingServices ~= hadServices
local answer = {isNew and before and 1 or 0, known, isNew and version or before, last, knownServices, countingServices or '', lastServices}
if not isCurrent or (services ~= '' and countingServices ~= services) then return answer end
if not isNew and not haveServicesChanged and ARGV[4] ~= '1' then return answer end
if redis.call('GET', KEYS[2]) ~= text then
  redis.call('SET', KEYS[2], text)
  redis.call('INCR', KEYS[6])
elseif not isNew then
  return answer
end
if not before then return answer end
local id = 'policy-file-' .. string.format('%d', now)
if isNew then id = 'policy-' .. string.format('%d', last) end
if isNew or haveServicesChanged then
  local record = { what = 'policy', who = 'Gatehouse', from = before, to = version }
  local changes = cjson.decode(ARGV[5])
  if #changes > 0 then record.changes = changes end
  redis.call('XADD', KEYS[3], '*', 'at', string.format('%d', now), 'record', cjson.encode(record))
end
local facts = cjson.encode({ before = before, after = version, news = ARGV[6] })
for _, channel in ipairs(cjson.decode(ARGV[7])) do
  local each = id .. '-' .. channel
  local notice = cjson.encode({ id = each, channelId = channel, facts = facts })
  announce(KEYS[4], ARGV[8] .. each, each, notice, ARGV[9])
end
return answer
`;

/** What the audit channel is told beside the two versions. */
interface PolicyNews extends Pick<PolicyNewsFacts, "changes" | "canceledCount"> {
  /** The first of the requests that it cancels. */
  canceled: readonly string[];
}

interface AdoptOptions {
  /** The number of the policy that this process had before; 0 where it remembers none. */
  from?: number;
  /** The version of its services, and the number of those that it had before. */
  services?: { version: string; from: number };
  /** Of its file. */
  text?: string;
  /** The file changed, and nothing of what decides. */
  isFileNews?: boolean;
  changes?: readonly string[];
  news?: PolicyNews;
  /** Where the news are told. */
  channels?: readonly string[];
}

/**
 * Makes this policy the current one where it may. Notes it in the audit trail with `changes`, and announces its `news`, once.
 * `isNew`: this call made it the current one. `number` is this policy's: others with a higher one supersede it.
 */
export async function adoptPolicy(
  redis: RedisClient,
  key: Keys,
  version: string,
  {
    from = 0,
    services,
    text = "",
    isFileNews = false,
    changes = [],
    news,
    channels = [],
  }: AdoptOptions = {},
) {
  const run = defineScript(redis, "gatehouseAdoptPolicy", adoptScript);
  const notices = noticeKeys(key);
  const answer = await run(
    [
      policyOrder(key),
      policyText(key),
      key("audit"),
      notices.list,
      servicesOrder(key),
      policyTexts(key),
    ],
    [
      version,
      from,
      text,
      isFileNews ? 1 : 0,
      JSON.stringify(changes),
      JSON.stringify(news ?? {}),
      JSON.stringify(channels),
      notices.hashOf(""),
      noticeKeptMs,
      services?.version ?? "",
      services?.from ?? 0,
    ],
  );
  const [isNew, number, ...counting] = answer as [0 | 1, number, ...AdoptedInAnswer];
  const [current, currentNumber, servicesNumber, countingServices, countingNumber] = counting;
  return {
    isNew: isNew === 1,
    number,
    current: { version: current, number: currentNumber } satisfies Adopted,
    services: services && {
      number: servicesNumber,
      current: { version: countingServices, number: countingNumber } satisfies Adopted,
    },
  };
}

type AdoptedInAnswer = [
  current: string,
  currentNumber: number,
  services: number,
  countingServices: string,
  countingNumber: number,
];

/** The news of an adopted policy, with Slack's names and links: made when it is posted, because who adopts can't wait for Slack. */
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
  const { before, after, news } = JSON.parse(facts) as Record<"before" | "after" | "news", string>;
  const { changes, canceled, canceledCount } = JSON.parse(news) as PolicyNews;
  const first = await on.store.getMany(canceled);
  const named = changes?.flatMap(({ added, removed }) => [...added, ...removed]) ?? [];
  const [links, nameOf] = await Promise.all([
    Promise.all(first.map(({ delivered }) => linkTo(delivered.card, on))),
    readNames(named, on),
  ]);
  return policyNews({
    before,
    after,
    changes,
    canceled: first.map((request, at) => ({ request, link: links[at] })),
    canceledCount,
    nameOf,
  });
}
