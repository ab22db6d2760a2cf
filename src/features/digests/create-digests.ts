import { isTransitional } from "../../fleet/compute/compute.ts";
import type { Config } from "../../config/config.ts";
import type { Policy } from "../../config/policy-file.ts";
import { messageOf } from "../../errors.ts";
import type { Inventory, KnownVm, Scope } from "../../fleet/inventory/inventory.ts";
import type { Log } from "../../log/log.ts";
import { type Message } from "../../messages/blocks.ts";
import { type Markdown, listed, md } from "../../messages/markdown.ts";
import { type Fact, unreadIn } from "../../core/facts/fact.ts";
import { scopeOfChannel } from "../../core/permit/access.ts";
import { sightOf } from "../../core/permit/sight.ts";
import type { Events } from "../../core/events/read-events.ts";
import type { Freeze } from "../../core/request/freeze.ts";
import { dayMs } from "../../monitor/drift-records.ts";
import type { DigestPart, HandoverPart } from "../digest-part.ts";
import type { DigestStore } from "./digest-store.ts";
import { type DigestFacts, type MemoryUse, itemsOf, troublesIn } from "./items.ts";
import { type ReadHandover, renderDigest, renderHandover } from "./render-digest.ts";
import type { OpenRequest, ReadOpenRequests } from "./open-requests.ts";
import type { Slot } from "./schedules.ts";
import { defineService } from "../../registry/service-key.ts";
import { lineOf } from "./line-buttons.ts";
import type { ViewLimit } from "../../commands/view-limit.ts";
import { momentWords } from "../../text/time-words.ts";

export type Digests = ReturnType<typeof createDigests>;

/** The services that the command and the buttons of digests answer from. */
export const digestsOf = defineService<Digests>("digests");

interface DigestsOptions {
  store: DigestStore;
  config: Pick<Config, "policy">;
  /** The full inventory, not limited to a view. */
  inventory: Pick<Inventory, "vms" | "projects" | "state" | "upToDate" | "seenIn">;
  openRequests: ReadOpenRequests;
  events: Pick<Events, "since">;
  /** What is known now of VMs, as far as the scope sees them. */
  factsOf?(vms: readonly KnownVm[], scope: Scope | undefined): Promise<readonly Fact[]>;
  /** The parts that features contribute. */
  parts?(): readonly DigestPart[];
  /** What features tell whoever takes the shift. */
  handoverParts?(): readonly HandoverPart[];
  /** Reads the freeze that stands. */
  freeze?(): Promise<Freeze | undefined>;
  /** Reads since when VMs have been in their status (ms), by ID, where that is known. */
  statusSince(vms: readonly KnownVm[]): Promise<ReadonlyMap<string, number>>;
  /** Reads how full Redis is; undefined when it doesn't say. */
  memory(): Promise<MemoryUse | undefined>;
  log: Log;
  now(): number;
}

/**
 * Globs of the targets that a digest is about; undefined for everything that the channel may see.
 */
type Targets = readonly string[] | undefined;

/** How long a scheduled digest waits for a fresh inventory (ms). */
const refreshMs = 15_000;
/** A digest that is at most this late counts as on time (ms). */
const onTimeMs = 5 * 60_000;

export function createDigests(options: DigestsOptions) {
  const { store, config, inventory, openRequests, log, now } = options;
  const { schedules, snoozes } = store;

  /**
   * Reads the facts of a digest. A part that can't be read is named in the digest; the others are
   * still reported.
   */
  async function facts(
    channel: string,
    scope: Scope | undefined,
    { targets, isScheduled = false }: { targets?: Targets; isScheduled?: boolean } = {},
  ): Promise<DigestFacts> {
    const { timing } = config.policy;
    // Nobody waits for a scheduled digest, so it may wait until even a large fleet is read.
    await inventory.upToDate(isScheduled ? refreshMs : undefined);
    const since = (await store.reportedUntil({ channel, targets })) ?? now() - dayMs;
    const readAt = now();
    const sight = sightOf(inventory, scope, targets);
    const unread: string[] = [];
    const cut: string[] = [];
    const onCut = (part: string) => void cut.push(part);
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
    const aboutTarget = ({ target }: OpenRequest) => target;
    const seesAll = scope === undefined && targets === undefined;
    const [state, vms, open, happened, frozen, memory] = await Promise.all([
      orUnread("how old the list of VMs is", sight.inventory.state()),
      orUnread("VMs", sight.vms()),
      orUnread("open requests", sight.only(openRequests(onCut), aboutTarget)),
      orUnread("what happened", options.events.since(since, scope, targets)),
      orUnread("whether changes are frozen", Promise.resolve(options.freeze?.())),
      seesAll ? orUnread("how full Redis is", options.memory()) : undefined,
    ]);
    const troubled = (vms ?? []).filter(
      ({ status }) => status === "ERROR" || isTransitional(status),
    );
    const about = { vms: vms ?? [], seesAll, only: sight.only, since, now: readAt };
    const ofFeatures = options.parts?.() ?? [];
    const [statusSince, known = [], ...parts] = await Promise.all([
      orUnread("since when VMs are in trouble", options.statusSince(troubled)),
      orUnread("what is known of VMs", Promise.resolve(options.factsOf?.(about.vms, scope))),
      ...ofFeatures.map((part) => orUnread(part.name, part.read(about))),
    ]);
    const toldByParts = ofFeatures.flatMap(({ tellsFacts = [] }) => tellsFacts);
    const read = parts.filter((part) => part !== undefined);
    return {
      now: readAt,
      since,
      vms,
      parts: read,
      cut: [
        ...cut,
        ...(happened?.isCut === true ? ["the newest records of what happened"] : []),
        ...read.flatMap((part) => part.cut ?? []),
      ],
      troubles: troublesIn(known, toldByParts),
      frozen,
      memory,
      seen: (await seen)?.length,
      statusSince: statusSince ?? new Map(),
      refreshedAt: state?.refreshedAt,
      stale: state?.stale ?? true,
      unreadProjects: state?.unread ?? [],
      gaps: state?.gaps,
      open,
      events: happened?.events,
      unread: [...new Set([...unread, ...(happened?.unread ?? []), ...unreadIn(known)])],
      stuckAfterMs: timing.settleDeadlineMs,
    };
  }

  return {
    schedules,
    snoozes,
    noteReported: store.noteReported,
    /**
     * Builds a digest of what the channel may see. Without a slot it is a digest on request, about
     * the targets of the channel's own digests.
     */
    async build(channel: string, { slot }: { slot?: Slot } = {}): Promise<Message> {
      const targets = slot ? slot.rule.targets : await targetsOf(channel);
      const scope = scopeOfChannel(config.policy, channel);
      const digestFacts = await facts(channel, scope, { targets, isScheduled: slot !== undefined });
      // A line ends its snooze only if it is certainly gone: not if something couldn't be read, and
      // not in a digest about some targets only.
      const isWhole =
        digestFacts.unread.length === 0 && !digestFacts.stale && targets === undefined;
      const all = isWhole ? new Set(itemsOf(digestFacts).map(lineOf)) : undefined;
      const snoozed = await snoozes.quiet(channel, now(), all);
      const about = targets ? listed(targets) : scope && teamsWords(config.policy, channel);
      if (!slot) return renderDigest(digestFacts, { title: "Digest", about, snoozed });
      const dueAt = momentWords(slot.at, slot.rule.timezone);
      const ms = now() - slot.at;
      const late = ms > onTimeMs ? { ms, dueAt } : undefined;
      return renderDigest(digestFacts, { title: `Digest, ${dueAt}`, about, snoozed, late });
    },
    /** Builds a handover of what the scope sees. `left` is the note of the person who leaves. */
    async handover(
      channel: string,
      scope: Scope | undefined,
      more: { left?: { author: string; text: string }; limit?: ViewLimit | undefined } = {},
    ): Promise<Message> {
      const underWay = readHandoverParts(scope);
      return renderHandover(await facts(channel, scope), await underWay, more);
    },
  };

  /**
   * The targets of the channel's digests; undefined when one of them is about everything, or there
   * is none.
   */
  async function targetsOf(channel: string): Promise<Targets> {
    const rules = await schedules.of(channel);
    const targets = rules.flatMap((rule) => rule.targets ?? []);
    return rules.length > 0 && rules.every((rule) => rule.targets) ? targets : undefined;
  }

  async function readHandoverParts(scope: Scope | undefined): Promise<readonly ReadHandover[]> {
    const readIds = async () =>
      new Set((await sightOf(inventory, scope, undefined).vms()).map(({ id }) => id));
    let ids: ReturnType<typeof readIds> | undefined;
    const seesVm = async (vmId: string) => !scope || (await (ids ??= readIds())).has(vmId);
    const about = { seesVm, now: now() };
    const reading = (options.handoverParts?.() ?? []).map(async ({ name, read }) => {
      const list = await read(about).catch((error: unknown) => {
        log.warn("digest.unread", { part: name, why: messageOf(error) });
        return undefined;
      });
      return { name, list };
    });
    return Promise.all(reading);
  }
}

/** The teams whose channel it is: `team payments`. */
function teamsWords({ teams }: Pick<Policy, "teams">, channelId: string): Markdown {
  const teamsHere = Object.entries(teams).filter(([, { channel }]) => channel === channelId);
  const names = teamsHere.map(([team]) => team);
  if (names.length === 0) return md`projects of no team`;
  return md`${names.length === 1 ? "team" : "teams"} ${names.join(", ")}`;
}
