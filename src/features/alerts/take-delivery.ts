import { setTimeout as sleep } from "node:timers/promises";
import { deadlineMs, within } from "../../deadline.ts";
import { isSame } from "../../fleet/inventory/contents.ts";
import type { Keys, RedisClient } from "../../redis/redis.ts";
import {
  type AlertGroup,
  bareGroup,
  detailsOf,
  emptyGroup,
  fires,
  merge,
  nextHeldAt,
  saysTheSame,
} from "./alert-group.ts";
import type { LabeledVm } from "./alert-record.ts";
import { type AlertStore, idAfter } from "./alert-store.ts";
import { auditOf, withGroup } from "./change-group.ts";
import { type Delivery, shortHash } from "./read-alerts.ts";
import { type StoredAlert, parseAlert } from "./stored-alert.ts";

/** Translates a delivery to what exists now. */
export interface Meaning {
  /** The VM that a label names; undefined unless it names exactly one. */
  vmOf(label: string): Promise<Omit<LabeledVm, "label"> | undefined>;
  /** The channel for a group with these VMs; empty for none. */
  channelOf(vmIds: readonly string[]): Promise<string>;
}

/** A group that fires again later than this after its end gets a new message (ms). */
const anewMs = 10 * 60_000;
/** How long the pointer to a group's newest record is kept (ms): longer than the record. */
const pointerMs = 30 * 24 * 3600_000;
/**
 * A delivery that isn't stored by then is refused, and its source repeats it: Alertmanager waits 10
 * s (ms).
 */
const takenWithinMs = 8_000;
/** The random pause between two tries grows from the shortest to the longest (ms). */
const shortestPauseMs = 5;
const longestPauseMs = 250;

/** A group as it is after a delivery. */
interface GroupChange {
  source: string;
  /** The group as it was read. Undefined for a new one. */
  before?: StoredAlert | undefined;
  group: AlertGroup;
  /** Redis time (ms). */
  at: number;
  /** The revision that was read. */
  revision: number;
}

/** Takes what sources tell: a delivery is stored with its group, or refused. */
export function createIntake(redis: RedisClient, key: Keys, store: AlertStore) {
  /** For each group a promise that resolves when this process has stored its last delivery. */
  const turns = new Map<string, Promise<void>>();

  /**
   * Waits until earlier deliveries to the same group are stored in this process: a burst would only
   * make its writes fail each other. Other processes are kept apart by a compare-and-set. Waits no
   * longer than `until`; disposing of the result gives the turn back.
   */
  async function turnIn(group: string, until: number) {
    const before = turns.get(group) ?? Promise.resolve();
    const { promise: left, resolve: leave } = Promise.withResolvers<void>();
    const ended = before.then(() => left);
    turns.set(group, ended);
    await within(until - performance.now(), before, () => undefined);
    return {
      isOver: () => performance.now() >= until,
      [Symbol.dispose]() {
        leave();
        if (turns.get(group) === ended) turns.delete(group);
      },
    };
  }

  /**
   * Stores a delivery. Resolves with its group's ID and whether the group changed; undefined,
   * with nothing written, when others wrote to the group all the time. A delivery that changes
   * nothing writes nothing.
   */
  async function take(source: string, delivery: Delivery, meaning: Meaning) {
    const base = `a-${shortHash(source, delivery.groupKey)}`;
    if (delivery.alerts.length === 0 && !delivery.isWhole) return { isChanged: false };
    const until = performance.now() + deadlineMs(takenWithinMs);
    using turn = await turnIn(base, until);
    for (let tries = 0; !turn.isOver(); tries++) {
      const at = await store.now();
      const id = (await redis.getex(key("alert-of", base), "PX", pointerMs)) ?? base;
      const fields = await store.outbox.get(id);
      const before = parseAlert(id, fields);
      // A group that can't be read begins anew in the same message.
      const revision = Number(fields["revision"] ?? 0);
      const known = before?.record.group ?? emptyGroup;
      const group = merge(known, delivery, at);
      if (before?.state === "ended" && fires(group) && at - before.changedAt > anewMs) {
        // The pointer only saves the search.
        const next = idAfter(id);
        const begun = merge(bareGroup(known), delivery, at);
        const isBegun =
          !(await store.get(next)) &&
          (await write(next, { source, group: begun, at, revision: 0 }, meaning));
        await redis.set(key("alert-of", base), next, "PX", pointerMs);
        if (isBegun) return { id: next, isChanged: true };
        continue;
      }
      // The end of an alert that was never told opens no group.
      if (!before && delivery.alerts.length === 0) return { isChanged: false };
      const isChanged = await write(id, { source, before, group, at, revision }, meaning);
      if (isChanged !== false) return { id, isChanged: isChanged === "said" };
      // Other processes write to this group now: wait a random time, so that they don't collide
      // again.
      await sleep(Math.random() * Math.min(longestPauseMs, 2 ** tries * shortestPauseMs));
    }
    return undefined;
  }

  /**
   * Writes a group. Resolves with `said` if people must be told something new, `noted` if only
   * who told it changed, false when the record changed since it was read, and undefined when
   * there is nothing to write.
   */
  async function write(
    id: string,
    { source, before, group, at, revision }: GroupChange,
    { vmOf, channelOf }: Meaning,
  ) {
    const vms = [...(before?.record.vms ?? [])];
    const known = before?.record.vms.length ?? 0;
    // A label keeps the VM that it meant first, for as long as the group is open.
    for (const label of new Set(detailsOf(group).map(({ vm }) => vm))) {
      const isKnown = label === "" || vms.some((labeledVm) => labeledVm.label === label);
      const vm = isKnown ? undefined : await vmOf(label);
      if (vm) vms.push({ label, ...vm });
    }
    const was = before?.record.group;
    const hasNewVms = vms.length > known;
    if (isSame(was, group) && !hasNewVms) return undefined;
    const record = before?.record ?? {
      source,
      channelId: await channelOf(vms.map((vm) => vm.id)),
      events: [],
      told: 0,
      firings: 0,
      urgentAt: at,
      requests: [],
    };
    const after = withGroup({ ...record, vms, silence: undefined }, was, group, at);
    const isSaid = !was || hasNewVms || !saysTheSame(was, group);
    // This comes first: if the process dies in between, one unneeded look is all that happens.
    const heldUntil = nextHeldAt(group);
    if (heldUntil !== undefined) await store.held.later(id, heldUntil - (await store.now()));
    const audit = isSaid ? auditOf(id, after) : undefined;
    if (!(await store.move({ id, revision }, after, audit))) return false;
    return isSaid ? "said" : "noted";
  }

  return take;
}
