import { setTimeout as sleep } from "node:timers/promises";
import { deadlineMs, within } from "../../deadline.ts";
import { isSame } from "../../fleet/inventory/contents.ts";
import { boardOf, createBoards } from "../../redis/board.ts";
import { createOutbox } from "../../redis/outbox.ts";
import { createRecords } from "../../redis/record.ts";
import { type Fields, type Keys, type RedisClient, redisNow } from "../../redis/redis.ts";
import { placeIn, shownIn } from "../../redis/shown.ts";
import {
  type AlertGroup,
  bareGroup,
  detailsOf,
  emptyGroup,
  endAll,
  fires,
  firingIn,
  isFiring,
  merge,
  nextHeldAt,
  saysTheSame,
  settle,
} from "./alert-group.ts";
import { type ClosedChannels, closedField, closedIn } from "../../core/deliver/open-place.ts";
import { type AlertEvent, type AlertRecord, type LabeledVm, alertRecord } from "./alert-record.ts";
import { type Delivery, shortHash } from "./read-alerts.ts";
import { severityRank } from "./severity-rank.ts";
import type { AlertSource } from "./sources.ts";

export {
  type AlertGroup,
  type ShownAlert,
  detailsOf,
  firingIn,
  isFiring,
  merge,
  unknownIn,
} from "./alert-group.ts";

/** How severe the worst alert is that fires; 0 for none. */
const rankOf = (group: AlertGroup): number =>
  Math.max(
    0,
    ...detailsOf(group).map((detail) => (isFiring(detail) ? severityRank(detail.severity) : 0)),
  );

function eventsOf(before: AlertGroup, after: AlertGroup): AlertEvent[] {
  const [was, firingNow] = [before, after].map((group) =>
    detailsOf(group).flatMap((detail) => (isFiring(detail) && detail.vm !== "" ? detail.vm : [])),
  );
  const vms = [...new Set(firingNow)].filter((vm) => !was?.includes(vm));
  if (!fires(before)) return fires(after) ? [{ is: "fired", vms }] : [];
  if (!fires(after)) return [{ is: "ended", vms: [] }];
  return vms.length > 0 ? [{ is: "joined", vms }] : [];
}

export interface StoredAlert {
  id: string;
  record: AlertRecord;
  state: "firing" | "ended";
  revision: number;
  createdAt: number;
  changedAt: number;
  /** `formerShown`: what the former card shows since the card moved to another channel. */
  delivered: ReturnType<typeof shownIn> & { formerShown: string };
  closed: ClosedChannels;
}

/** Parses a stored group; undefined when it is gone or can't be read. */
export function parseAlert(id: string, fields: Fields): StoredAlert | undefined {
  const { alert, state } = fields;
  if (!alert || !state) return undefined;
  const record = alertRecord.parse(alert, id);
  return (
    record && {
      id,
      record,
      state: fires(record.group) ? "firing" : "ended",
      revision: Number(fields["revision"]),
      createdAt: Number(fields["createdAt"]),
      changedAt: Number(fields["changedAt"]),
      delivered: { ...shownIn(fields), formerShown: fields["former-shown"] ?? "" },
      closed: closedIn(fields),
    }
  );
}

/** A firing alert, as its source names it and its VM. */
export interface FiringAlert {
  key: string;
  name: string;
  label: string;
  /** Undefined when the label doesn't name exactly one VM. */
  vmId: string | undefined;
  /** The VM's project when the label arrived. */
  project?: LabeledVm["project"];
  since: number;
  /** When the source was last heard, if it has been silent for long. */
  quietSince?: number | undefined;
}

/** Translates a delivery to what exists now. */
export interface Meaning {
  /** The VM that a label names; undefined unless it names exactly one. */
  vmOf(label: string): Promise<Omit<LabeledVm, "label"> | undefined>;
  /** The channel for a group with these VMs; empty for none. */
  channelOf(vmIds: readonly string[]): Promise<string>;
}

/** A group that fires again later than this after its end gets a new message (ms). */
const anewMs = 10 * 60_000;
const keptMs = 7 * 24 * 3600_000;
/** How long the pointer to a group's newest record is kept (ms): longer than the record. */
const pointerMs = 30 * 24 * 3600_000;
const mostEvents = 30;
/** The most names of alerts, and of VMs, in a record of the audit trail. */
const mostRecorded = 3;
const maxTries = 20;
/**
 * A delivery that isn't stored by then is refused, and its source repeats it: Alertmanager waits 10
 * s (ms).
 */
const takenWithinMs = 8_000;
/** The random pause between two tries grows from the shortest to the longest (ms). */
const shortestPauseMs = 5;
const longestPauseMs = 250;
const untoldMs = 30_000;
/**
 * When a group isn't heard of for `quietMs`, its message says so; after `unheardMs` it is taken as
 * over. Alertmanager and Grafana repeat firing alerts every 4 hours by default, and rarely less
 * than once a day. The other formats tell of an alert once (ms).
 */
const repeated = { quietMs: 12 * 3600_000, unheardMs: 48 * 3600_000 };
const toldOnce = { quietMs: 48 * 3600_000, unheardMs: 7 * 24 * 3600_000 };
const patience: Readonly<Record<AlertSource["format"], typeof repeated>> = {
  alertmanager: repeated,
  grafana: repeated,
  pagerduty: toldOnce,
  plain: toldOnce,
};

/** The ID that a group gets when it fires anew. It follows from this one, so every process finds it. */
const idAfter = (id: string) => `a-${shortHash(id)}`;

export type Alerts = ReturnType<typeof createAlerts>;

/** Stores groups of alerts in Redis, as sources tell of them. */
export function createAlerts(redis: RedisClient, key: Keys) {
  const alertKey = (id: string) => key("alert", id);
  const outbox = createOutbox(redis, key, "alert", alertKey);
  /** Groups with a held delivery, each due when that delivery counts. */
  const held = createOutbox(redis, key, "alert-held", alertKey);
  const records = createRecords(redis, key, { open: key("alerts", "open"), outbox });
  /** Overviews: messages that tell of several groups. */
  const overviews = createBoards(redis, {
    outbox,
    memberKey: alertKey,
    openKey: (...place) => key("alerts", "overview", ...place),
    letter: "o",
    opensForMs: 10 * 60_000,
    keptMs,
  });
  const now = () => redisNow(redis);
  const get = async (id: string) => parseAlert(id, await outbox.get(id));

  async function getMany(ids: readonly string[]): Promise<StoredAlert[]> {
    const alerts = await Promise.all(ids.map(get));
    return alerts.filter((alert) => alert !== undefined);
  }

  /** The group, and each one that it became since by firing anew, oldest first. */
  async function getWithLater(id: string): Promise<StoredAlert[]> {
    const all: StoredAlert[] = [];
    for (let alert = await get(id); alert; alert = await get(idAfter(alert.id))) all.push(alert);
    return all;
  }

  /**
   * Writes a new state of the group. False, with nothing written, when the group changed since it
   * was read.
   */
  async function move(
    { id, revision }: Pick<StoredAlert, "id" | "revision">,
    record: AlertRecord,
    audit?: object,
  ): Promise<boolean> {
    const state = fires(record.group) ? "firing" : "ended";
    const how = { id, revision, state, final: state === "ended", keptMs };
    const fields = { alert: alertRecord.write(record) };
    return (await records.move({ ...how, audit, fields })) !== undefined;
  }

  /** Redraws the group's message. */
  async function touch(id: string): Promise<void> {
    if (await redis.exists(alertKey(id))) await records.touch(id);
  }

  /** The record with this group and with the events that its thread must tell. */
  function withGroup<T extends Omit<AlertRecord, "group">>(
    record: T,
    was: AlertGroup = emptyGroup,
    group: AlertGroup,
    at: number,
  ) {
    const news = eventsOf(was, group);
    const all = [...record.events, ...news];
    const events = all.slice(-mostEvents);
    const begins = news.filter(({ is: kind }) => kind === "fired").length;
    const isUrgent = begins > 0 || rankOf(group) > rankOf(was);
    return {
      ...record,
      group,
      events,
      told: record.told + all.length - events.length,
      firings: record.firings + begins,
      urgentAt: isUrgent ? at : record.urgentAt,
    };
  }

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

  /** The groups that fire and name this VM, the oldest first. */
  async function openOn(vmId: string): Promise<readonly StoredAlert[]> {
    const open = await getMany(await records.openIds());
    const named = open.filter(({ record }) => record.vms.some(({ id }) => id === vmId));
    return named.toSorted((a, b) => a.createdAt - b.createdAt);
  }

  /** The record of a group for the audit trail, with the first of its alerts and VMs. */
  function auditOf(id: string, { source, group }: AlertRecord) {
    const details = detailsOf(group);
    const first = (texts: readonly string[]) =>
      [...new Set(texts)].filter((text) => text !== "").slice(0, mostRecorded);
    return {
      what: "alert",
      source,
      alert: id,
      firing: firingIn(group),
      alerts: first(details.map((detail) => detail.name)),
      on: first(details.map((detail) => detail.vm)),
    };
  }

  return {
    outbox,
    held,
    overviews,
    now,
    get,
    getMany,
    getWithLater,
    touch,
    refresh: records.refresh,

    openOn,

    /** Redraws the messages of firing groups that name this VM. */
    async touchOn(vmId: string): Promise<void> {
      for (const { id } of await openOn(vmId)) await touch(id);
    },

    /**
     * Stores a delivery. Resolves with its group's ID and whether the group changed; undefined,
     * with nothing written, when others wrote to the group all the time. A delivery that changes
     * nothing writes nothing.
     */
    async take(source: string, delivery: Delivery, { vmOf, channelOf }: Meaning) {
      const base = `a-${shortHash(source, delivery.groupKey)}`;
      if (delivery.alerts.length === 0 && !delivery.isWhole) return { isChanged: false };
      const until = performance.now() + deadlineMs(takenWithinMs);
      using turn = await turnIn(base, until);
      for (let tries = 0; !turn.isOver(); tries++) {
        const at = await now();
        const id = (await redis.getex(key("alert-of", base), "PX", pointerMs)) ?? base;
        const fields = await outbox.get(id);
        const before = parseAlert(id, fields);
        // A group that can't be read begins anew in the same message.
        const revision = Number(fields["revision"] ?? 0);
        const known = before?.record.group ?? emptyGroup;
        const group = merge(known, delivery, at);
        if (before?.state === "ended" && fires(group) && at - before.changedAt > anewMs) {
          // The pointer only saves the search.
          const next = idAfter(id);
          const begun = merge(bareGroup(known), delivery, at);
          const isBegun = !(await get(next)) && (await write(next, undefined, begun, at, 0));
          await redis.set(key("alert-of", base), next, "PX", pointerMs);
          if (isBegun) return { id: next, isChanged: true };
          continue;
        }
        // The end of an alert that was never told opens no group.
        if (!before && delivery.alerts.length === 0) return { isChanged: false };
        const isChanged = await write(id, before, group, at, revision);
        if (isChanged !== false) return { id, isChanged: isChanged === "said" };
        // Other processes write to this group now: wait a random time, so that they don't collide
        // again.
        await sleep(Math.random() * Math.min(longestPauseMs, 2 ** tries * shortestPauseMs));
      }
      return undefined;

      /**
       * Writes a group. Resolves with `said` if people must be told something new, `noted` if only
       * who told it changed, false when the record changed since it was read, and undefined when
       * there is nothing to write.
       */
      async function write(
        id: string,
        before: StoredAlert | undefined,
        group: AlertGroup,
        at: number,
        revision: number,
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
        if (heldUntil !== undefined) await held.later(id, heldUntil - (await now()));
        const audit = isSaid ? auditOf(id, after) : undefined;
        if (!(await move({ id, revision }, after, audit))) return false;
        return isSaid ? "said" : "noted";
      }
    },

    /**
     * Marks firing groups that their source no longer mentions: their messages say so, and in the
     * end they are taken as over. Idempotent; any process may call it at any time. `sources` are
     * those of this process, whose gatehouse.yml may be older than that of the process that took a
     * delivery. So a source is removed only if `readInForce`, the sources of the policy in force,
     * lacks it too. A group of a source that only others know is theirs to judge.
     */
    async endUnheard(
      sources: Readonly<Record<string, Pick<AlertSource, "format">>>,
      readInForce: () => Promise<Readonly<Record<string, unknown>> | undefined>,
    ): Promise<void> {
      const at = await now();
      const open = await getMany(await records.openIds());
      const isOurs = ({ record }: StoredAlert) => Object.hasOwn(sources, record.source);
      // It is read after the groups: what took a delivery was in force before its group was stored.
      const inForce = open.every(isOurs) ? undefined : await readInForce();
      for (const before of open) {
        const { record, id } = before;
        const heardAt = record.group.told?.heardAt ?? before.changedAt;
        const source = isOurs(before) ? sources[record.source] : undefined;
        const isRemoved = !source && inForce && !Object.hasOwn(inForce, record.source);
        if (!source && !isRemoved) continue;
        const { quietMs, unheardMs } = source ? patience[source.format] : repeated;
        const isUnheard = at - heardAt > unheardMs;
        if (isRemoved || isUnheard) {
          const silence = isRemoved ? "source-removed" : "unheard";
          const after = withGroup(
            { ...record, silence },
            record.group,
            endAll(record.group, at),
            at,
          );
          await move(before, after, { ...auditOf(id, after), why: silence });
        } else if (at - heardAt > quietMs && record.silence === undefined)
          await move(before, { ...record, silence: "quiet" });
      }
    },

    /**
     * Merges a held delivery whose time has come. Resolves with the revision, and the time until
     * the next look (ms; 0: none).
     */
    async settle(id: string): Promise<{ revision: number; waitMs: number }> {
      const [before, at] = [await get(id), await now()];
      const group = before?.record.group ?? emptyGroup;
      const heldUntil = nextHeldAt(group);
      if (!before || heldUntil === undefined) return { revision: before?.revision ?? 0, waitMs: 0 };
      const { record, revision } = before;
      const settled = settle(group, at);
      if (settled === group) return { revision, waitMs: heldUntil - at };
      const after = withGroup({ ...record, silence: undefined }, group, settled, at);
      const audit = saysTheSame(group, settled) ? undefined : auditOf(id, after);
      const isMoved = await move(before, after, audit);
      if (!isMoved) return { revision, waitMs: 1 };
      const next = nextHeldAt(settled);
      return { revision: revision + 1, waitMs: next === undefined ? 0 : next - at };
    },

    /**
     * Notes on the group that its button made this request, or redraws the group when the request
     * has ended. Idempotent.
     */
    async note(id: string, request: string): Promise<void> {
      for (let tries = 0; tries < maxTries; tries++) {
        const before = await get(id);
        const { requests = [] } = before?.record ?? {};
        if (!before || requests.includes(request)) return touch(id);
        if (await move(before, { ...before.record, requests: [...requests, request] })) return;
      }
    },

    /**
     * Notes that the channel took no message of a group or an overview. It is tried again later.
     */
    async close(id: string, channelId: string): Promise<void> {
      await outbox.remember(id, closedField(channelId, await now()));
    },

    /** Firing groups that no channel shows, though a message should have been posted by now. */
    async untold(afterMs = untoldMs): Promise<StoredAlert[]> {
      const [open, at] = [await getMany(await records.openIds()), await now()];
      return open.filter(({ delivered, createdAt }) => {
        const isShown = delivered.card !== undefined || boardOf(delivered) !== undefined;
        return !isShown && at - createdAt >= afterMs;
      });
    },

    /** Where the group's message stands: its own card, or its overview. */
    async placeOf(alert: StoredAlert) {
      const overview = boardOf(alert.delivered);
      return overview ? placeIn((await outbox.get(overview))["card"]) : alert.delivered.card;
    },

    /** Alerts that fire now, for digests and the Home tab. */
    async firing(): Promise<readonly FiringAlert[]> {
      const open = await getMany(await records.openIds());
      return open.flatMap(({ id, record: { group, vms, silence } }) => {
        const quietSince = silence === undefined ? undefined : group.told?.heardAt;
        return detailsOf(group).flatMap(({ name, vm: label, since, endedAt }) => {
          const { id: vmId, project } = vms.find((vm) => vm.label === label) ?? {};
          const line = `${id} ${name} ${label}`;
          return endedAt ? [] : [{ key: line, name, label, vmId, project, since, quietSince }];
        });
      });
    },
  };
}
