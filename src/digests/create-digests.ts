import { isTransitional } from "../compute/compute.ts";
import type { Config } from "../config/config.ts";
import { messageOf } from "../errors.ts";
import type { Inventory, Scope } from "../inventory/inventory.ts";
import type { Log } from "../log/log.ts";
import { type Message, channelLink, md, notice } from "../messages/message.ts";
import { scopeOfChannel, seesUnder } from "../policy/access.ts";
import { compileTargetGlobs, ownerOf } from "../policy/refusal.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import type { Journal } from "../requests/journal/journal.ts";
import { createDriftRecords, dayMs } from "./drift-facts.ts";
import type { DigestPart } from "./digest-part.ts";
import { createEventReader } from "./events.ts";
import { type DigestFacts, itemsOf } from "./items.ts";
import { lineOf } from "./line-buttons.ts";
import { renderChanges, renderDigest, renderHandover } from "./render-digest.ts";
import type { RequestFact, RequestSource } from "./request-facts.ts";
import { type Slot, createSchedules, latestSlot, localWords, seriesOf } from "./schedules.ts";
import { createStatusRecords } from "./status-facts.ts";
import type { Followed } from "./subscriptions.ts";

export type Digests = ReturnType<typeof createDigests>;

interface DigestsOptions {
  redis: RedisClient;
  key: Keys;
  config: Pick<Config, "policy">;
  /** All that there is. */
  inventory: Pick<Inventory, "vms" | "projects" | "state" | "upToDate" | "seenIn">;
  requests: RequestSource;
  /** What features tell. */
  parts?: readonly DigestPart[];
  /** The freeze that stands. */
  store?: Pick<Journal, "freezeState">;
  /** Called when people turn a digest on or off. */
  schedulesChanged?: () => Promise<unknown>;
  /** What a person is called, by user ID. */
  personName?: (id: string) => Promise<string>;
  log: Log;
  now(): number;
}

/** Undefined for all that a channel may be told. */
type Targets = readonly string[] | undefined;

/** How long a scheduled digest waits for it. */
const refreshMs = 15_000;
/** Up to this late counts as on time. */
const onTimeMs = 5 * 60_000;

export function createDigests(options: DigestsOptions) {
  const { redis, key, config, inventory, requests, log, now } = options;
  const schedules = createSchedules(redis, key, config, options.schedulesChanged);
  const snoozes = createSnoozes(redis, key);
  /** Until when the last digest of each series reported changes (ms). */
  const toldUntil = key("digest-told");
  /** The IDs of those that were posted, on request too, by when. */
  const posted = key("digest-posted");
  const driftRecords = createDriftRecords(redis, key);
  const statuses = createStatusRecords(redis, key);
  const eventsSince = createEventReader(options);

  /** A part that can't be read is named; the others are still reported. */
  async function facts(
    channel: string,
    scope: Scope | undefined,
    { targets, isScheduled = false }: { targets?: Targets; isScheduled?: boolean } = {},
  ): Promise<DigestFacts> {
    const { timing } = config.policy;
    // No one waits for a scheduled digest: even a large fleet is read for it
    await inventory.upToDate(isScheduled ? refreshMs : undefined);
    const last = await redis.hget(toldUntil, seriesOf({ channel, targets }));
    const since = Number(last ?? now() - dayMs);
    const readAt = now();
    const sight = sightOf(inventory, scope, targets);
    const unread: string[] = [];
    async function orUnread<T>(part: string, reading: Promise<T>): Promise<T | undefined> {
      try {
        return await reading;
      } catch (error) {
        log.warn("digest.unread", { part, why: messageOf(error) });
        unread.push(part);
        return undefined;
      }
    }
    const seen = targets && orUnread("VMs", sight.inventory.vms());
    const aboutTarget = ({ target }: RequestFact) => target;
    const [state, vms, open, ended, reviews, frozen, events] = await Promise.all([
      orUnread("how old the list of VMs is", sight.inventory.state()),
      orUnread("VMs", sight.vms()),
      orUnread("open requests", sight.only(requests.open(), aboutTarget)),
      orUnread("what changed", sight.only(requests.endedSince(since), aboutTarget)),
      orUnread(
        "break-glass reviews",
        sight.only(requests.reviews(), ({ on }) => on),
      ),
      orUnread("whether changes are frozen", Promise.resolve(options.store?.freezeState())),
      orUnread("freezes and reviews", eventsSince(since)),
    ]);
    const seesAll = scope === undefined && targets === undefined;
    const troubled = (vms ?? []).filter(
      ({ status }) => status === "ERROR" || isTransitional(status),
    );
    const about = { vms: vms ?? [], seesAll, since, now: readAt };
    const [statusSince, ...parts] = await Promise.all([
      orUnread("since when VMs are in trouble", statuses.since(troubled)),
      ...(options.parts ?? []).map((part) => orUnread(part.name, part.read(about))),
    ]);
    return {
      now: readAt,
      since,
      vms,
      parts: parts.filter((part) => part !== undefined),
      frozen,
      switches: events?.switches,
      signed: events?.signed,
      seen: (await seen)?.length,
      statusSince: statusSince ?? new Map(),
      refreshedAt: state?.refreshedAt,
      stale: state?.stale ?? true,
      unreadProjects: state?.unread ?? [],
      gaps: state?.gaps,
      open,
      ended,
      reviews,
      unread,
      stuckAfterMs: timing.settleDeadlineMs,
    };
  }

  return {
    schedules,
    snoozes,
    drift: driftRecords,
    statuses,
    /** Before it is posted. */
    async posts(id: string): Promise<void> {
      const over = redis.pipeline().zremrangebyscore(posted, "-inf", now() - keptMs);
      await over.zadd(posted, now(), id).pexpire(posted, keptMs).exec();
    },
    /** IDs of the digests that may have been posted since then (ms). */
    postedSince: (at: number) => redis.zrangebyscore(posted, at - onTimeMs, "+inf"),
    /** Its last digest has reported what changed until then (ms). */
    told: (rule: Parameters<typeof seriesOf>[0], until: number) =>
      redis.hset(toldUntil, seriesOf(rule), until),
    /** What the channel may be told. Without a slot: a digest on request, of the targets that the channel's own are about. */
    async build(channel: string, { slot }: { slot?: Slot } = {}): Promise<Message> {
      const targets = slot ? slot.rule.targets : await targetsOf(channel);
      const scope = scopeOfChannel(config.policy, channel);
      const found = await facts(channel, scope, { targets, isScheduled: slot !== undefined });
      // What can't be read, or is for another digest here, may still be so: only a line that is gone for certain ends its snooze
      const isWhole = found.unread.length === 0 && !found.stale && targets === undefined;
      const all = isWhole ? new Set(itemsOf(found).map(lineOf)) : undefined;
      const snoozed = await snoozes.quiet(channel, now(), all);
      if (!slot) return renderDigest(found, { title: "Digest", snoozed });
      const dueAt = localWords(slot.at, slot.rule.timezone);
      const ms = now() - slot.at;
      const late = ms > onTimeMs ? { ms, dueAt } : undefined;
      return renderDigest(found, { title: `Digest, ${dueAt}`, snoozed, late });
    },
    /** Everything within the scope that ended since then (ms). */
    async changes(since: number, scope: Scope | undefined): Promise<Message> {
      const { only } = sightOf(inventory, scope, undefined);
      return renderChanges(await only(requests.endedSince(since), ({ target }) => target));
    },
    /** What the scope sees. `note`: of who leaves. */
    async handover(
      channel: string,
      scope: Scope | undefined,
      note?: { by: string; text: string },
    ): Promise<Message> {
      const consoles = consolesIn(scope).catch((error: unknown) => {
        log.warn("digest.unread", { part: "consoles", why: messageOf(error) });
        return undefined;
      });
      return renderHandover(await facts(channel, scope), await consoles, note);
    },
  };

  /** Undefined when one of its digests is about everything, or it has none. */
  async function targetsOf(channel: string): Promise<Targets> {
    const rules = await schedules.of(channel);
    const targets = rules.flatMap((rule) => rule.targets ?? []);
    return rules.length > 0 && rules.every((rule) => rule.targets) ? targets : undefined;
  }

  async function consolesIn(scope: Scope | undefined) {
    const open = await requests.consoles(now());
    if (!scope) return open;
    const seen = new Set((await sightOf(inventory, scope, undefined).vms()).map(({ id }) => id));
    return open.filter(({ vmId }) => seen.has(vmId));
  }
}

type Spoken = Omit<Followed, "projectNameNow">;

/** What of everything is spoken of: what a scope sees, and of that what globs name. */
function sightOf(inventory: DigestsOptions["inventory"], scope: Scope | undefined, globs: Targets) {
  const seen = scope ? inventory.seenIn(async () => scope) : inventory;
  const isNamed = globs && compileTargetGlobs(globs);
  return {
    inventory: seen,
    async vms() {
      const vms = await seen.vms();
      return isNamed ? vms.filter((vm) => isNamed({ kind: "vm", ...vm })) : vms;
    },
    /** Keeps what is about a VM or project that is spoken of: by the name it had, and by that of now. */
    async only<T>(
      reading: Promise<readonly T[]>,
      targetOf: (one: T) => Spoken | undefined,
    ): Promise<readonly T[]> {
      const some = await reading;
      if (!scope && !isNamed) return some;
      const projects = await inventory.projects();
      const namesNow = new Map(projects.map(({ id, name }) => [id, name]));
      return some.filter((one) => {
        const target = targetOf(one);
        if (!target) return false;
        const { id, name } = ownerOf(target);
        return seesUnder(scope, id, [name, namesNow.get(id)]) && (!isNamed || isNamed(target));
      });
    },
  };
}

const longestMs = 8 * dayMs;

/** Lines that a channel doesn't show for a while. */
function createSnoozes(redis: RedisClient, key: Keys) {
  const named = (channel: string) => key("digest-snoozes", channel);
  return {
    /** Until a time (ms). */
    async snooze(channel: string, line: string, until: number): Promise<void> {
      const snoozed = named(channel);
      await redis.pipeline().zadd(snoozed, until, line).pexpire(snoozed, longestMs).exec();
    },
    /** One line, or all of the channel. */
    async unsnooze(channel: string, line?: string): Promise<void> {
      if (line === undefined) await redis.del(named(channel));
      else await redis.zrem(named(channel), line);
    },
    /**
     * The lines that are snoozed now. Of all lines that there are, those that are gone no longer are: when one comes back, it
     * is news.
     */
    async quiet(channel: string, now: number, all?: ReadonlySet<string>) {
      const quiet = await redis.zrangebyscore(named(channel), `(${now}`, "+inf");
      const gone = quiet.filter((line) => all?.has(line) === false);
      if (gone.length > 0) await redis.zrem(named(channel), ...gone);
      return new Set(quiet);
    },
  };
}

/** Older slots are not posted: the next one covers them. */
const mostLateMs = 24 * 3600_000;
const keptMs = 7 * 24 * 3600_000;
const maxStarts = 3;

interface PostDueOptions extends Pick<DigestsOptions, "redis" | "key" | "log" | "now"> {
  digests: Pick<Digests, "schedules" | "build" | "told" | "posts">;
  /** Stored when it resolves, posted once per ID. */
  announce(notice: { id: string; channelId: string; message: Message }): Promise<unknown>;
  /** Tells of the digest of a channel, once per ID. */
  alarm(channelId: string, id: string, message: Message): Promise<unknown>;
  /** Failpoint for crash tests, while a digest is built. */
  at?: ((point: "digest", slotId: string) => Promise<void>) | undefined;
  /** Lease of a slot while its digest is built (ms): longer than that takes, short enough to retry soon after a process dies. */
  leaseMs: number;
}

/**
 * Posts what is due now; called at the time of each digest, by whichever worker has its job. Of missed slots only the newest is posted, once, late. A slot
 * isn't begun twice at once, nor more than three times in all: building it may crash processes. Its notice, not this, makes
 * it posted once.
 */
export function createPostDue(options: PostDueOptions): () => Promise<void> {
  const { redis, key, digests, now, log, leaseMs } = options;
  const { schedules } = digests;

  /** A few a day: slots that this process knows to be over. */
  const over = new Set<string>();

  async function post(slot: Slot): Promise<void> {
    const { id, rule, at } = slot;
    const named = key("digest-slot", id);
    if ((await redis.hexists(named, "ended")) === 1) return void over.add(id);
    // Another process builds it, or has died or failed in it just now
    if ((await redis.set(key("digest-slot", id, "lease"), "held", "PX", leaseMs, "NX")) === null)
      return;
    const starts = await redis.hincrby(named, "starts", 1);
    await redis.pexpire(named, keptMs);
    if (starts > maxStarts) await giveUp(slot);
    else {
      const readUntil = now();
      const message = await digests.build(rule.channel, { slot });
      await options.at?.("digest", id);
      await digests.posts(id);
      await options.announce({ id, channelId: rule.channel, message });
      await digests.told(rule, readUntil);
      log.info("digest.posted", { slot: id, lateMs: Math.max(0, readUntil - at) });
    }
    await redis.hset(named, "ended", starts > maxStarts ? "failed" : "posted");
    over.add(id);
  }

  async function giveUp({ id, rule, at }: Slot): Promise<void> {
    const due = localWords(at, rule.timezone);
    log.error("digest.failed", { slot: id });
    const text = md`⚠️ The digest for ${channelLink(rule.channel)}, due ${due}, could not be made: three attempts failed. See the log. The next digest is due as usual.`;
    await options.alarm(rule.channel, `${id}-failed`, notice(text));
  }

  return async () => {
    for (const rule of await schedules.all()) {
      const slot = latestSlot(rule, now());
      if (!slot || over.has(slot.id)) continue;
      try {
        // Checked for old slots too: a weekly schedule must be known before its first one
        const isOurs = await schedules.isOurs(slot, now());
        if (isOurs && now() - slot.at <= mostLateMs) await post(slot);
      } catch (error) {
        // Must not hold up the others; it is tried again when its lease has ended, three times in all
        log.warn("digest.later", { slot: slot.id, why: messageOf(error) });
      }
    }
  };
}
