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
import type { RedisPlace } from "../redis/redis.ts";
import { type Repeated, repeatHere } from "../redis/repeat.ts";
import { policyKeptNews } from "../core/cards/policy-news.ts";
import type { Announce } from "../core/deliver/notices.ts";
import type { People } from "../slack/people/people.ts";
import {
  type Claim,
  type InForce,
  hasRulesOf,
  isInForce,
  policyName,
  versionProblem,
} from "./adopt-policy.ts";
import { type OfferOptions, offerPolicy, readInForce } from "./offer-policy.ts";
import { PolicyStanding, ownPolicyName } from "./policy-standing.ts";

interface KeeperOptions extends Omit<OfferOptions, "file"> {
  config: Config;
  log: Log;
  telemetry: Telemetry;
  people: { forget: People["forget"] };
  announce: Announce;
}

/**
 * Handles a process without a policy file, which has no policy to offer. It may start only if no
 * process had a policy either, so that Gatehouse can be tried out, and it stores nothing. Throws
 * ConfigError.
 */
export async function refuseMissing(on: RedisPlace & { config: Config; log: Log }): Promise<void> {
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
export async function keepPolicy(on: KeeperOptions): Promise<PolicyKeeper> {
  const keeper = new PolicyKeeper(on);
  await keeper.start();
  return keeper;
}

export class PolicyKeeper {
  readonly #on: KeeperOptions;
  readonly #standing: PolicyStanding;
  readonly #listeners: (() => void)[] = [];
  #inForce: InForce = { stored: undefined, textInForce: undefined };
  /** A text that was loaded but not offered yet, because Redis was unavailable. */
  #loaded: PolicyText | undefined;
  #groupChanges: number | undefined;
  /** The problems of the file about which the audit channel was last told. */
  #announcedProblems: readonly string[] = [];
  #repeated: Repeated | undefined;
  #lastTurn = Promise.resolve();

  constructor(on: KeeperOptions) {
    this.#on = on;
    this.#standing = new PolicyStanding(on);
  }

  async start(): Promise<void> {
    const { redis, key, log, config } = this.#on;
    const { policyFile: file } = config;
    // Anything that this process caches about people from now on is younger than this count.
    this.#groupChanges = (await readPolicySigns(redis, key)).groupChanges;
    if (!this.#isMissing) {
      const claim = await this.#offer(file.current);
      const why = versionProblem(file.asWritten, this.#inForce.stored, file.shown);
      if (claim === "refused") log.warn("policy.refused", { version: ownPolicyName(config), why });
      this.#standing.compareWith(this.#inForce);
    }
    const { heartbeatMs } = config.policy.timing;
    this.#repeated = repeatHere("policy", heartbeatMs, () => this.#inTurn(() => this.#keep()), log);
  }

  /** Why this process may change nothing now, in words. Undefined while it may. */
  readonly standstill = (): string | undefined => this.#standing.standstill();

  /** Rereads the file. Never rejects. */
  readonly reload = (): Promise<void> => this.#inTurn(() => this.#load());

  /** Registers a listener for when other rules have come into force here. */
  onChanged(listener: () => void): void {
    this.#listeners.push(listener);
  }

  async close(): Promise<void> {
    await this.#repeated?.close();
  }

  get #isMissing(): boolean {
    return this.#on.config.policyFile.missingAt !== undefined;
  }

  /**
   * Runs actions one after the other, because a signal may come while the file is being looked at.
   */
  #inTurn(act: () => Promise<void>): Promise<void> {
    this.#lastTurn = this.#lastTurn
      .then(act)
      .catch((error: unknown) => this.#on.log.warn("policy.later", { why: messageOf(error) }));
    return this.#lastTurn;
  }

  async #offer(own: PolicyText): Promise<Claim> {
    const { claim, inForce } = await offerPolicy(own, {
      ...this.#on,
      file: this.#on.config.policyFile,
    });
    this.#inForce = inForce;
    return claim;
  }

  /** One heartbeat. */
  async #keep(): Promise<void> {
    const { config, redis, key, log, people } = this.#on;
    const { policyFile: file } = config;
    if (config.watchesPolicy && file.isReplaced()) await this.#load();
    await this.#settle();
    const signs = await readPolicySigns(redis, key);
    if (this.#groupChanges !== undefined && this.#groupChanges !== signs.groupChanges) {
      people.forget();
      log.info("people.groups-changed", {});
    }
    this.#groupChanges = signs.groupChanges;
    const isNews = signs.number !== (this.#inForce.stored?.number ?? 0);
    if (isNews) this.#inForce = await readInForce({ redis, key, file });
    // Redis was emptied, or has forgotten a higher version. A process whose policy was in force
    // stores it again.
    const { stored } = this.#inForce;
    const { version = 0 } = file.asWritten;
    const isForgotten = stored === undefined || version > (stored.version ?? 0);
    if (isForgotten && !this.#standing.isOut && !this.#isMissing) await this.#offer(file.current);
    // When other processes have reread their file, this process's file may have been replaced, too.
    const inForce = this.#inForce;
    const isWanted = (text: PolicyText) =>
      text.text === inForce.stored?.text ||
      (!isInForce(file.current, inForce) && isInForce(text, inForce));
    if (this.#standing.isOut || (isNews && !this.#isMissing)) await this.#load(isWanted);
    this.#standing.compareWith(this.#inForce);
  }

  /** Reads the file, and offers its content. */
  async #load(isWanted?: (text: PolicyText) => boolean): Promise<void> {
    const news = this.#on.config.policyFile.reread(isWanted);
    if (news?.kind === "read") this.#loaded = news.text;
    else {
      // A text that was loaded before may no longer be in the file.
      if (!isWanted) this.#loaded = undefined;
      this.#noteKept(news);
    }
    await this.#settle();
  }

  /** Offers what was loaded, and reports what can't be used. Both may have to wait for Redis. */
  async #settle(): Promise<void> {
    const { policyFile: file } = this.#on.config;
    const loaded = this.#loaded;
    if (loaded !== undefined) {
      const claim = await this.#offer(loaded);
      const out = versionProblem(loaded.policy, this.#inForce.stored, file.shown);
      if (claim === "refused" && out !== undefined) this.#noteKept(file.keep([out]));
      else this.#take(loaded);
      this.#loaded = undefined;
      this.#standing.compareWith(this.#inForce);
    }
    await this.#announceProblems();
  }

  /** Goes by this text from now on. */
  #take(text: PolicyText): void {
    const { config, log, telemetry } = this.#on;
    const { policyFile: file } = config;
    const { policyVersion: before, policy: former } = file.current;
    const changes = changesBetween(former, text.policy).map(changeInWords);
    const hasRules = hasRulesOf(this.#inForce, text);
    file.take(text, hasRules ? this.#inForce.stored?.rules : undefined);
    this.#noteKept(undefined);
    telemetry.policyReloads.inc({ outcome: "changed" });
    log.info("policy.changed", { before, version: ownPolicyName(config), changes });
    for (const listener of this.#listeners) listener();
  }

  #noteKept(news: PolicyNews | undefined): void {
    const { config, log, telemetry } = this.#on;
    telemetry.policyUnusable.set(config.policyFile.problems.length > 0 ? 1 : 0);
    if (news?.kind !== "kept") return;
    telemetry.policyReloads.inc({ outcome: "kept" });
    log.warn("policy.kept", { version: ownPolicyName(config), problems: news.problems });
  }

  /** Tells the audit channel once why the file isn't in force. */
  async #announceProblems(): Promise<void> {
    const { config, announce } = this.#on;
    const { problems } = config.policyFile;
    if (problems.length === 0 || problems === this.#announcedProblems) return;
    const print = hash("sha256", problems.join("\n")).slice(0, 12);
    const message = policyKeptNews(ownPolicyName(config), problems);
    const channelId = config.policy.audit?.channel;
    const id = `policy-kept-${this.#inForce.stored?.number ?? 0}-${print}`;
    if (channelId !== undefined) await announce({ id, channelId, message });
    this.#announcedProblems = problems;
  }
}
