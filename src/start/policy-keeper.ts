import { hash } from "node:crypto";
import {
  type OwedPolicyNews,
  type PolicyNews,
  readOwedNews,
  settleNews,
} from "../audit/owed-policy-news.ts";
import {
  adoptPolicy,
  type PolicySigns,
  readPolicySigns,
  readPolicyText,
} from "../audit/policies.ts";
import type { PolicyText } from "../config/changing-policy.ts";
import { type Config, ConfigError } from "../config/config.ts";
import { changeInWords, changesBetween } from "../config/policy-changes.ts";
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
 * A process without a file has no policy to give: it may start where no process had one either, so that Gatehouse can be tried
 * out, and adopts nothing. Throws ConfigError.
 */
export async function refuseMissing(
  { policyFile }: Pick<Config, "policyFile">,
  { redis, key, log }: Pick<KeeperOptions, "redis" | "key" | "log">,
): Promise<void> {
  const path = policyFile.missingAt;
  if (path === undefined) return;
  const { current } = await readPolicySigns(redis, key);
  if (current !== undefined)
    throw new ConfigError([
      `GATEHOUSE_CONFIG: ${path} is missing, and other processes had a policy (version ${current.version}): put their file there, or name its place in GATEHOUSE_CONFIG`,
    ]);
  log.warn("policy.missing", { path, why: "everyone can view and no one can change anything" });
}

/**
 * Makes the policy of this process the current one where it may (`adoptPolicy`), and follows the others from then on
 * (decisions 052, 053).
 */
export async function keepPolicy(on: KeeperOptions): Promise<PolicyKeeper> {
  const { config, redis, key, log, telemetry } = on;
  const { policyFile: file } = config;
  const beatMs = config.policy.timing.heartbeatMs;
  const listeners: (() => void)[] = [];
  let memory = file.missingAt === undefined ? recallPolicy(config.dataDir) : undefined;
  let current: PolicySigns["current"];
  let supersededAt: number | undefined;
  let isToldStill = false;
  let groupChanges: number | undefined;
  /** Problems of the file that aren't told yet, because Redis was away. */
  let untold: readonly string[] | undefined;
  /** The file was read, and isn't adopted yet, for the same reason: what it was before, where that is known. */
  let owed: { former: PolicyText | undefined } | undefined;
  /** News that this process owes the audit channel. Those of others it tells when they are late. */
  let ownNews: string | undefined;
  /** No news are owed up to the policy of this number. */
  let toldUpTo: number | undefined;

  async function adopt(former: PolicyText | undefined): Promise<void> {
    const { text } = file;
    const version = config.policyVersion;
    const from = memory === undefined ? 0 : memory.number - (memory.text === text ? 1 : 0);
    const { current: counts } = await readPolicySigns(redis, key);
    const replaced = former?.policyVersion === counts?.version ? former : await textOf(counts);
    const changes = replaced && changesBetween(replaced.policy, file.asWritten);
    const channels = [former, replaced, { policy: config.policy }].map(
      (one) => one?.policy.audit?.channel,
    );
    const adoption = await adoptPolicy(redis, key, version, {
      from,
      text,
      isFileNews: former?.policyVersion === version && changes?.length !== 0,
      changes: changes?.slice(0, maxNoted).map(changeInWords) ?? [],
      news: await newsOf({ changes, channels, isSame: counts?.version === version }),
    });
    if (adoption.isNew) await on.at("policy-adopted", version);
    if (adoption.newsId !== undefined) {
      ownNews = adoption.newsId;
      toldUpTo = undefined;
    }
    remember({ text, number: adoption.number });
    compare(adoption.current);
  }

  /** What the others have, where this process had something else; undefined where Redis has it in no form that it reads. */
  async function textOf(counts: PolicySigns["current"]): Promise<PolicyText | undefined> {
    const parsed = file.parse((await readPolicyText(redis, key)) ?? "");
    return parsed?.policyVersion === counts?.version ? parsed : undefined;
  }

  /** Whoever moves the audit channel is seen in the one that was watched. What is canceled is listed while it still waits. */
  async function newsOf({
    changes,
    channels,
    isSame,
  }: {
    changes: PolicyNews["changes"];
    channels: readonly (string | undefined)[];
    isSame: boolean;
  }): Promise<PolicyNews | undefined> {
    const named = [...new Set(channels)].filter((one) => one !== undefined);
    if (named.length === 0) return undefined;
    const after = config.policyVersion;
    const waiting = isSame ? [] : await waitingUnderOthers(after);
    const canceled = waiting.slice(0, maxNamed).map(({ record }) => record.id);
    return { after, changes, channels: named, canceled, canceledCount: waiting.length };
  }

  function remember(now: PolicyMemory): void {
    const isSame = memory?.text === now.text && memory.number === now.number;
    if (isSame || file.missingAt !== undefined) return;
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
    const state = file.missingAt === undefined ? "isn't that one" : "is missing";
    const problem = placeOf(file.problems[0] ?? `its policy file ${state}`);
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
    owed ??= { former: before };
    await settle();
  }

  /** Adopts what was read, and tells it once. */
  async function settle(): Promise<void> {
    if (owed === undefined) return;
    await adopt(owed.former);
    owed = undefined;
    for (const listener of listeners) listener();
    await tellOwed();
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
  // What this process remembers of people is younger than this count
  ({ groupChanges } = await readPolicySigns(redis, key));
  if (file.missingAt === undefined)
    await adopt(memory && memory.text !== file.text ? file.parse(memory.text) : undefined);

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

const print = (text: string) => hash("sha256", text).slice(0, 12);
