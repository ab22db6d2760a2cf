import { hash } from "node:crypto";
import { readPolicySigns, readStoredPolicy } from "../audit/stored-policy.ts";
import {
  type PolicyNews,
  type PolicyText,
  changeInWords,
  changesBetween,
} from "../config/changing-policy.ts";
import { type Config } from "../config/config.ts";
import { ConfigError } from "../config/config-error.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import type { Telemetry } from "../log/telemetry.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import { repeatHere } from "../redis/repeat.ts";
import type { Journal } from "../core/request/journal.ts";
import { policyKeptNews } from "../core/cards/policy-news.ts";
import type { Announce } from "../core/deliver/notices.ts";
import type { People } from "../slack/people/people.ts";
import {
  type Claim,
  type InForce,
  adoptPolicy,
  claimOf,
  hasRulesOf,
  hasServicesOf,
  isInForce,
  policyName,
  whyOut,
} from "./adopt-policy.ts";

interface KeeperOptions {
  config: Config;
  redis: RedisClient;
  key: Keys;
  log: Log;
  telemetry: Telemetry;
  store: Journal;
  people: Pick<People, "forget">;
  announce: Announce;
  wakeNotice(id: string): void;
  /** Failpoint. */
  at: ((point: "policy-adopted", version: string) => Promise<void>) | undefined;
}

/**
 * How long a replaced process may go on, because files reach processes one after the other: 15 s
 * with the usual heartbeat.
 */
const graceInBeats = 5;
const maxNamed = 10;
const maxRead = 1000;

/**
 * Handles a process without a policy file, which has no policy to offer. It may start only if no
 * process had a policy either, so that Gatehouse can be tried out, and it stores nothing. Throws
 * ConfigError.
 */
export async function refuseMissing(
  on: Pick<KeeperOptions, "config" | "redis" | "key" | "log">,
): Promise<void> {
  const { missingAt } = on.config.policyFile;
  if (missingAt === undefined) return;
  const stored = await readStoredPolicy(on.redis, on.key);
  if (stored !== undefined)
    throw new ConfigError([
      `GATEHOUSE_CONFIG: ${missingAt} is missing, and other processes had a policy (version ${policyName(stored.rules, stored.version)}): put their file there, or name its place in GATEHOUSE_CONFIG`,
    ]);
  const why = "everyone can view and no one can change anything";
  on.log.warn("policy.missing", { path: missingAt, why });
}

/**
 * Offers the file of this process at its start and whenever another one is loaded, and follows the
 * policy that other processes put in force (decisions 052, 118, 119). A file that is loaded while
 * the process runs counts here once it is in force; a refused one leaves the former file in place.
 * A process whose rules aren't in force changes nothing (`standstill`).
 */
export async function keepPolicy(on: KeeperOptions) {
  const { config, redis, key, log, telemetry } = on;
  const { policyFile: file } = config;
  const beatMs = config.policy.timing.heartbeatMs;
  const listeners: (() => void)[] = [];
  let current: InForce = { stored: undefined, theirs: undefined };
  /** A text that was loaded but not offered yet, because Redis was unavailable. */
  let loaded: PolicyText | undefined;
  /** When the rules of this process were last seen to be in force. Undefined if they never were. */
  let lastInForceAt: number | undefined;
  let isOut = false;
  let isToldStill = false;
  let groupChanges: number | undefined;
  /** The problems of the file about which the audit channel was last told. */
  let toldProblems: readonly string[] = [];

  const isMissing = () => file.missingAt !== undefined;
  const ownName = () => policyName(config.policyVersion, file.asWritten.version);

  async function readCurrent(): Promise<void> {
    const stored = await readStoredPolicy(redis, key);
    current = { stored, theirs: stored && file.parse(stored.text) };
  }

  /** Puts a text in force, if it may be. */
  async function offer(own: PolicyText): Promise<Claim> {
    for (;;) {
      await readCurrent();
      const claim = claimOf(own, current);
      if (claim !== "replaces") return claim;
      const { stored, theirs: textInForce } = current;
      const isOther = stored !== undefined && !hasRulesOf(current, own);
      const waiting = isOther ? await waitingUnderOthers(own.policyVersion) : [];
      const adopted = await adoptPolicy(redis, key, own, {
        before: current,
        canceled: waiting.slice(0, maxNamed),
        canceledCount: waiting.length,
        // A change of the audit channel is also announced in the former one.
        channels: [file.asWritten, textInForce?.policy, own.policy].map(
          (policy) => policy?.audit?.channel,
        ),
        wakeNotice: on.wakeNotice,
      });
      if (!adopted) continue;
      current = { stored: adopted, theirs: own };
      if (stored !== undefined) await on.at?.("policy-adopted", adopted.rules);
      return claim;
    }
  }

  /**
   * IDs of drafts and of authorized requests that weren't sent; none of them will run. They are
   * listed while they still wait.
   */
  async function waitingUnderOthers(rules: string): Promise<readonly string[]> {
    const open = await on.store.getMany(await on.store.recentIds({ open: true }, maxRead));
    return open
      .filter(({ state }) => state === "draft" || state === "authorized")
      .filter(({ record }) => record.policyVersion !== rules)
      .map(({ record }) => record.id);
  }

  /** Compares the file of this process with the policy in force. */
  function compare(): void {
    const { stored } = current;
    const own = file.current;
    // When Redis was emptied, or was never given a policy, nobody has replaced anything.
    if (isInForce(own, current) || (stored === undefined && !isOut)) {
      if (stored !== undefined && !isMissing()) file.goBy(stored.rules);
      if (isOut) log.info("policy.current-again", { version: ownName() });
      isOut = isToldStill = false;
      lastInForceAt = performance.now();
    } else if (!isOut && stored !== undefined) {
      isOut = true;
      log.warn("policy.superseded", {
        version: ownName(),
        current: policyName(stored.rules, stored.version),
        ...(!hasServicesOf(current, own) && { services: "other ones are in force" }),
      });
    }
    const still = standstill();
    telemetry.policyInfo.reset();
    telemetry.policyInfo.set({ version: config.policyVersion }, 1);
    telemetry.policySuperseded.set(still === undefined ? 0 : 1);
    if (still === undefined || isToldStill) return;
    isToldStill = true;
    log.error("policy.standstill", { why: still });
  }

  /**
   * Why this process may change nothing now, in words. Undefined while its rules are in force, or
   * were until a moment ago.
   */
  function standstill(): string | undefined {
    if (!isOut) return undefined;
    const outMs = performance.now() - (lastInForceAt ?? -Infinity);
    if (outMs < graceInBeats * beatMs) return undefined;
    const { stored } = current;
    const wasInForce = lastInForceAt !== undefined;
    const out = wasInForce || isMissing() ? undefined : whyOut(file.asWritten, stored, file.shown);
    if (out !== undefined) return out;
    const problem = withPlaceAlone(
      file.problems[0] ?? `its policy file ${isMissing() ? "is missing" : "isn't that one"}`,
    );
    return stored?.rules === config.policyVersion && !hasServicesOf(current, file.current)
      ? `the services in gatehouse.yml were replaced, and this process doesn't have the new ones: ${problem}`
      : `version ${stored ? policyName(stored.rules, stored.version) : ""} of the policy replaced ${ownName()}, and this process doesn't have it: ${problem}`;
  }

  /** Reads the file, and offers its content. */
  async function load(isWanted?: (text: PolicyText) => boolean): Promise<void> {
    const news = file.reread(isWanted);
    if (news?.is === "read") loaded = news.text;
    else {
      // A text that was loaded before may no longer be in the file.
      if (!isWanted) loaded = undefined;
      noteKept(news);
    }
    await settle();
  }

  function noteKept(news: PolicyNews | undefined): void {
    telemetry.policyUnusable.set(file.problems.length > 0 ? 1 : 0);
    if (news?.is !== "kept") return;
    telemetry.policyReloads.inc({ outcome: "kept" });
    log.warn("policy.kept", { version: ownName(), problems: news.problems });
  }

  /** Offers what was loaded, and reports what can't be used. Both may have to wait for Redis. */
  async function settle(): Promise<void> {
    if (loaded !== undefined) {
      const claim = await offer(loaded);
      const out = whyOut(loaded.policy, current.stored, file.shown);
      if (claim === "refused" && out !== undefined) noteKept(file.keep([out]));
      else take(loaded);
      loaded = undefined;
      compare();
    }
    const { problems } = file;
    if (problems.length === 0 || problems === toldProblems) return;
    const print = hash("sha256", problems.join("\n")).slice(0, 12);
    const message = policyKeptNews(ownName(), problems);
    const channelId = config.policy.audit?.channel;
    const id = `policy-kept-${current.stored?.number ?? 0}-${print}`;
    if (channelId !== undefined) await on.announce({ id, channelId, message });
    toldProblems = problems;
  }

  function take(text: PolicyText): void {
    const { policyVersion: before, policy: former } = file.current;
    const changes = changesBetween(former, text.policy).map(changeInWords);
    file.take(text, hasRulesOf(current, text) ? current.stored?.rules : undefined);
    noteKept(undefined);
    telemetry.policyReloads.inc({ outcome: "changed" });
    log.info("policy.changed", { before, version: ownName(), changes });
    for (const listener of listeners) listener();
  }

  async function keep(): Promise<void> {
    if (config.watchesPolicy && file.isReplaced()) await load();
    await settle();
    const signs = await readPolicySigns(redis, key);
    if (groupChanges !== undefined && groupChanges !== signs.groupChanges) {
      on.people.forget();
      log.info("people.groups-changed", {});
    }
    groupChanges = signs.groupChanges;
    const isNews = signs.number !== (current.stored?.number ?? 0);
    if (isNews) await readCurrent();
    // Redis was emptied, or has forgotten a higher version. A process whose policy was in force
    // stores it again.
    const { version = 0 } = file.asWritten;
    const isForgotten = current.stored === undefined || version > (current.stored.version ?? 0);
    if (isForgotten && !isOut && !isMissing()) await offer(file.current);
    // When other processes have reread their file, this process's file may have been replaced, too.
    const { text: storedText } = current.stored ?? {};
    const isWanted = (text: PolicyText) =>
      text.text === storedText || (!isInForce(file.current, current) && isInForce(text, current));
    if (isOut || (isNews && !isMissing())) await load(isWanted);
    compare();
  }

  const later = (error: unknown) => log.warn("policy.later", { why: messageOf(error) });
  // Anything that this process caches about people from now on is younger than this count.
  ({ groupChanges } = await readPolicySigns(redis, key));
  if (!isMissing()) {
    const claim = await offer(file.current);
    const why = whyOut(file.asWritten, current.stored, file.shown);
    if (claim === "refused") log.warn("policy.refused", { version: ownName(), why });
    compare();
  }

  let turn = Promise.resolve();
  /**
   * Runs actions one after the other, because a signal may come while the file is being looked at.
   */
  function inTurn(act: () => Promise<void>): Promise<void> {
    turn = turn.then(act).catch(later);
    return turn;
  }
  const repeated = repeatHere("policy", beatMs, () => inTurn(keep), log);
  return {
    standstill,
    /** Rereads the file. Never rejects. */
    reload: () => inTurn(() => load()),
    /** Registers a listener for when other rules have come into force here. */
    onChanged: (listener: () => void) => void listeners.push(listener),
    close: () => repeated.close(),
  };
}

/**
 * Keeps only the place, like `gatehouse.yml line 3`. The rest may name something that not everybody
 * may see, and is in the log.
 */
export function withPlaceAlone(problem: string): string {
  const [place = "", ...rest] = problem.split(": ");
  return rest.length > 0 ? `${place} can't be used` : problem;
}
