import { hash } from "node:crypto";
import {
  type OwedPolicyNews,
  oweNewsOnce,
  type PolicyNews,
  readOwedNews,
  settleNews,
} from "../audit/owed-policy-news.ts";
import { adoptPolicy, type Adoption, newsIdOf, readPolicySigns } from "../audit/policies.ts";
import type { PolicyText } from "../config/changing-policy.ts";
import type { Config } from "../config/config.ts";
import { changeInWords, changesBetween, type PolicyChange } from "../config/policy-changes.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../log/log.ts";
import type { Telemetry } from "../log/telemetry.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import { startRounds } from "../redis/rounds.ts";
import type { Journal } from "../requests/journal/journal.ts";
import { policyKeptNews, policyNews } from "../requests/render/policy-news.ts";
import type { StoredRequest } from "../requests/journal/record.ts";
import type { Announce } from "../slack/deliver/announce.ts";
import { linkTo } from "../slack/deliver/permalink.ts";
import { readNames } from "../slack/people/names.ts";
import type { People } from "../slack/people/people.ts";
import type { Web } from "../slack/web.ts";
import { type PolicyMemory, recallPolicy, rememberPolicy } from "./policy-memory.ts";

/** Keeps this process on the policy that counts for all of them. */
export interface PolicyKeeper {
  /** Why this process may change nothing now, in words; undefined while its policy is the one that counts. */
  standstill(): string | undefined;
  /** Rereads the file. Never rejects. */
  reload(): Promise<void>;
  /** Called whenever other rules have come into force here. */
  onChanged(listener: () => void): void;
  close(): Promise<void>;
}

interface KeeperOptions {
  config: Config;
  redis: RedisClient;
  key: Keys;
  log: Log;
  telemetry: Pick<
    Telemetry,
    "policyInfo" | "policyReloads" | "policyUnusable" | "policySuperseded"
  >;
  store: Journal;
  people: People;
  /** Of this workspace; throws until Slack has said it. */
  teamId(): string;
  web: Web;
  announce: Announce;
  /** Failpoint. */
  at(point: "policy-adopted", version: string): Promise<void>;
}

/** Files reach processes one after the other: 15 s as heartbeats usually are. */
const graceInBeats = 5;
const maxNamed = 10;
const maxRead = 1000;
/** In the audit trail, which keeps them forever. */
const maxNoted = 50;

/**
 * Makes the policy of this process the current one where its file has changed since the process last ran, and follows the
 * others from then on (decisions 052, 053).
 */
export async function keepPolicy(on: KeeperOptions): Promise<PolicyKeeper> {
  const { config, redis, key, log, telemetry } = on;
  const { policyFile: file } = config;
  const beatMs = config.policy.timing.heartbeatMs;
  const listeners: (() => void)[] = [];
  let memory: PolicyMemory | undefined = recallPolicy(config.dataDir);
  let current: Adoption["current"] | undefined;
  let supersededAt: number | undefined;
  let isToldStill = false;
  let groupChanges: number | undefined;
  /** Problems of the file that aren't told yet, because Redis was away. */
  let untold: readonly string[] | undefined;
  /** Read, and not yet adopted, for the same reason. */
  let owed: { before: PolicyText; changes: readonly PolicyChange[] } | undefined;
  /** News that this process owes the audit channel. Those of others it tells when they are late. */
  let ownNews: string | undefined;
  /** No news are owed up to the policy of this number. */
  let toldUpTo: number | undefined;

  async function adopt(
    changes: readonly PolicyChange[] | undefined,
    former: string | undefined,
  ): Promise<Adoption> {
    const { text } = file;
    // The same text as before is no change: whoever was not replaced must not supersede those who were
    const from = memory && (memory.text === text ? memory.number - 1 : memory.number);
    const words = changes?.slice(0, maxNoted).map(changeInWords) ?? [];
    const version = config.policyVersion;
    const news = await newsOf(changes, former);
    const adoption = await adoptPolicy(redis, key, version, { from, changes: words, news });
    if (adoption.isNew) {
      await on.at("policy-adopted", version);
      owe(newsIdOf(adoption));
    }
    remember({ text, number: adoption.number });
    compare(adoption.current);
    return adoption;
  }

  /** Whoever moves the audit channel is seen in the one that was watched. What is canceled is listed while it still waits. */
  async function newsOf(
    changes: readonly PolicyChange[] | undefined,
    former: string | undefined,
  ): Promise<PolicyNews | undefined> {
    const named = [former, config.policy.audit?.channel].filter((one) => one !== undefined);
    if (named.length === 0) return undefined;
    const after = config.policyVersion;
    const counts = await readPolicySigns(redis, key);
    const waiting = counts.current?.version === after ? [] : await waitingUnderOthers(after);
    const canceled = waiting.slice(0, maxNamed).map(({ record }) => record.id);
    const channels = [...new Set(named)];
    return { after, changes, channels, canceled, canceledCount: waiting.length };
  }

  function owe(id: string): void {
    ownNews = id;
    toldUpTo = undefined;
  }

  function remember(now: PolicyMemory): void {
    if (memory?.text === now.text && memory.number === now.number) return;
    memory = now;
    rememberPolicy(config.dataDir, now, log);
  }

  function compare(counts: { version: string; number: number } | undefined): void {
    const own = config.policyVersion;
    current = counts;
    if (counts === undefined || counts.version === own) {
      if (supersededAt !== undefined) log.info("policy.current-again", { version: own });
      supersededAt = undefined;
      isToldStill = false;
      // Another process may have brought it back, under another number
      if (counts !== undefined && owed === undefined)
        remember({ text: file.text, number: counts.number });
    } else if (supersededAt === undefined) {
      supersededAt = performance.now();
      log.warn("policy.superseded", { version: own, current: counts.version });
    }
    const still = standstill();
    telemetry.policyInfo.reset();
    telemetry.policyInfo.set({ version: own }, 1);
    telemetry.policySuperseded.set(still === undefined ? 0 : 1);
    if (still === undefined || isToldStill) return;
    isToldStill = true;
    log.error("policy.standstill", { why: still });
  }

  function standstill(): string | undefined {
    if (supersededAt === undefined) return undefined;
    if (performance.now() - supersededAt < graceInBeats * beatMs) return undefined;
    const problem = placeOf(file.problems[0] ?? "its policy file isn't that one");
    return `version ${current?.version ?? ""} of the policy replaced ${config.policyVersion}, and this process doesn't have it: ${problem}`;
  }

  /** Reads the file; takes what it says, or tells why not. */
  async function read(options: { onlyVersion?: string } = {}): Promise<void> {
    const news = file.reread(options);
    telemetry.policyUnusable.set(file.problems.length > 0 ? 1 : 0);
    if (news?.is === "kept") {
      const { problems } = news;
      telemetry.policyReloads.inc({ outcome: "kept" });
      log.warn("policy.kept", { version: config.policyVersion, problems });
      untold = problems;
      return tellKept();
    }
    if (news === undefined) return;
    untold = undefined;
    const { before, after } = news;
    const changes = changesBetween(before.policy, after.policy);
    const version = after.policyVersion;
    telemetry.policyReloads.inc({ outcome: "changed" });
    log.info("policy.changed", {
      before: before.policyVersion,
      version,
      changes: changes.map(changeInWords),
    });
    owed = { before: owed?.before ?? before, changes: [...(owed?.changes ?? []), ...changes] };
    await settle();
  }

  /** Adopts what was read, and tells it once. */
  async function settle(): Promise<void> {
    if (owed === undefined) return;
    const { before, changes } = owed;
    const former = before.policy.audit?.channel;
    const adoption = await adopt(changes, former);
    owed = undefined;
    for (const listener of listeners) listener();
    const isSame = before.policyVersion === config.policyVersion;
    if (!adoption.isNew && isSame && changes.length > 0) await oweFileNews(before, changes);
    await tellOwed();
  }

  /** The file changed, and nothing of what decides: no adoption, and told all the same. */
  async function oweFileNews(before: PolicyText, changes: readonly PolicyChange[]): Promise<void> {
    const news = await newsOf(changes, before.policy.audit?.channel);
    if (news === undefined) return;
    const once = `${print(before.text)}-${print(file.text)}`;
    const id = `policy-file-${once}-${await on.store.now()}`;
    const noted = { id, before: before.policyVersion, news };
    if (await oweNewsOnce(redis, key, noted, { once, forMs: toldForMs })) owe(id);
  }

  /** Tells what is owed. What another process owes waits for that one, which may be at it. */
  async function tellOwed(): Promise<void> {
    if (current !== undefined && toldUpTo === current.number) return;
    const all = await readOwedNews(redis, key);
    const lateAt = all.length > 0 ? (await on.store.now()) - graceInBeats * beatMs : 0;
    const due = all.filter(({ id, at }) => id === ownNews || at < lateAt);
    for (const news of due) {
      await tellChanged(news);
      await settleNews(redis, key, news.id);
    }
    if (due.length === all.length) toldUpTo = current?.number;
  }

  async function tellChanged(news: OwedPolicyNews): Promise<void> {
    const { id, before, after, changes, channels, canceledCount } = news;
    const first = await on.store.getMany(news.canceled);
    const named = changes?.flatMap(({ added, removed }) => [...added, ...removed]) ?? [];
    const [links, nameOf] = await Promise.all([
      Promise.all(first.map(({ delivered }) => linkTo(delivered.card, on))),
      readNames(named, {
        web: on.web,
        person: async (userId) => on.people.person(userId, on.teamId()),
      }),
    ]);
    const facts = {
      before,
      after,
      changes,
      canceled: first.map((request, at) => ({ request, link: links[at] })),
      canceledCount,
      nameOf,
    };
    for (const channelId of channels)
      await on.announce({ id: `${id}-${channelId}`, channelId, message: policyNews(facts) });
  }

  async function tellKept(): Promise<void> {
    if (untold === undefined) return;
    const id = `policy-kept-${memory?.number ?? 0}-${print(untold.join("\n"))}`;
    const news = policyKeptNews(config.policyVersion, untold);
    const channelId = config.policy.audit?.channel;
    if (channelId !== undefined) await on.announce({ id, channelId, message: news });
    untold = undefined;
  }

  /** Drafts, and what was authorized and not sent: none of them runs. */
  async function waitingUnderOthers(version: string): Promise<readonly StoredRequest[]> {
    const ids = await on.store.recentIds({ open: true }, maxRead);
    const open = await on.store.getMany(ids);
    return open.filter(
      ({ state, record }) =>
        (state === "draft" || state === "authorized") && record.policyVersion !== version,
    );
  }

  async function round(): Promise<void> {
    if (config.watchesPolicy && file.isReplaced()) await read();
    await settle();
    await tellKept();
    const signs = await readPolicySigns(redis, key);
    if (groupChanges !== undefined && groupChanges !== signs.groupChanges) {
      on.people.forget();
      log.info("people.groups-changed", {});
    }
    groupChanges = signs.groupChanges;
    compare(signs.current);
    await tellOwed();
    // Where the others reread theirs, this one may have been replaced as well
    if (supersededAt !== undefined && current !== undefined)
      await read({ onlyVersion: current.version });
  }

  const later = (error: unknown) => log.warn("policy.later", { why: messageOf(error) });
  const former = memory && memory.text !== file.text ? file.parse(memory.text) : undefined;
  const changes = former && changesBetween(former.policy, file.asWritten);
  // What this process remembers of people is younger than this count
  ({ groupChanges } = await readPolicySigns(redis, key));
  await adopt(changes, former?.policy.audit?.channel);

  let turn = Promise.resolve();
  /** A signal may come while a round runs. */
  function inTurn(act: () => Promise<void>): Promise<void> {
    turn = turn.then(act).catch(later);
    return turn;
  }
  void inTurn(tellOwed);
  const rounds = startRounds("policy", beatMs, () => inTurn(round), log);
  return {
    standstill,
    reload: () => inTurn(() => read()),
    onChanged: (listener) => void listeners.push(listener),
    close: () => rounds.close(),
  };
}

/** `gatehouse.yml line 3`: the rest may name what not everybody sees, and stands in the log. */
export function placeOf(problem: string): string {
  const [place = "", ...rest] = problem.split(": ");
  return rest.length > 0 ? `${place} can't be used` : problem;
}

/** As long as the processes may need until all have read a new file. */
const toldForMs = 600_000;

const print = (text: string) => hash("sha256", text).slice(0, 12);
