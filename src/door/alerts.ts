import { createOutbox, membersIn, placeIn, sharedBy, shownIn } from "../redis/due-list.ts";
import { createRecords } from "../redis/record.ts";
import { type Fields, type Keys, type RedisClient, redisNow } from "../redis/redis.ts";
import { type Alert, type Delivery, type Detail, shortHash } from "./read-alerts.ts";

/** What is known of one alert. Without details: it is only counted. */
type Known = Pick<Alert, "at" | "endedAt"> & { detail?: Detail };

export interface AlertGroup {
  alerts: Readonly<Record<string, Known>>;
  /** Alerts that its source left out. */
  omitted: number;
}

const emptyGroup: AlertGroup = { alerts: {}, omitted: 0 };
const mostDetailed = 100;
const mostKnown = 1_000;
/** What ended so long ago makes room for others (ms). */
const pastMs = 3_600_000;

/**
 * A group after a delivery. Of two tellings of one alert the later counts, and at one time the end; so deliveries in any order, and
 * any number of times, end in the same group. Pure.
 */
export function merge(group: AlertGroup, { alerts, omitted }: Delivery, now: number): AlertGroup {
  const all = new Map(Object.entries(group.alerts));
  for (const { key, at, endedAt, ...detail } of alerts) {
    const told: Known = { at, ...(endedAt === undefined ? {} : { endedAt }), detail };
    const before = all.get(key);
    if (!before || compare(told, before) > 0) all.set(key, told);
  }
  const isPast = ({ endedAt = now }: Known) => Number(endedAt < now - pastMs);
  const byKey = ([a]: [string, Known], [b]: [string, Known]) => (a < b ? -1 : 1);
  const kept = [...all]
    .toSorted((a, b) => isPast(a[1]) - isPast(b[1]) || byKey(a, b))
    .slice(0, mostKnown)
    .map(([key, known], n): [string, Known] => [key, n < mostDetailed ? known : bare(known)])
    .toSorted(byKey);
  return { alerts: Object.fromEntries(kept), omitted: Math.max(group.omitted, omitted) };
}

const bare = ({ at, endedAt }: Known): Known => ({ at, ...(endedAt && { endedAt }) });

/** Where two peers word one telling differently, the same words count, whichever come last. */
function compare(one: Known, other: Known): number {
  const [a, b] = [one, other].map(({ detail = "" }) => JSON.stringify(detail));
  const byTime = one.at - other.at || (one.endedAt ?? 0) - (other.endedAt ?? 0);
  return byTime || Number((a ?? "") > (b ?? ""));
}

export const isFiring = ({ endedAt }: { endedAt?: number | undefined }) => endedAt === undefined;
const fires = ({ alerts }: AlertGroup) => Object.values(alerts).some(isFiring);
export const firingIn = ({ alerts, omitted }: AlertGroup): number =>
  Object.values(alerts).filter(isFiring).length + omitted;

/** Those that fire first, then by their times. */
export function detailsOf({ alerts }: AlertGroup): (Detail & { endedAt: number | undefined })[] {
  const ended = (one: { endedAt: number | undefined }) => Number(!isFiring(one));
  return Object.values(alerts)
    .flatMap(({ detail, endedAt }) => (detail ? [{ ...detail, endedAt }] : []))
    .toSorted((a, b) => ended(a) - ended(b) || a.since - b.since || (a.vm < b.vm ? -1 : 1));
}

/** What its thread tells; the first is on its card. `vms` are labels. */
export interface AlertEvent {
  is: "fired" | "joined" | "ended";
  vms: readonly string[];
}

function eventsOf(before: AlertGroup, after: AlertGroup): AlertEvent[] {
  const [was, is] = [before, after].map((group) =>
    detailsOf(group).flatMap((one) => (isFiring(one) && one.vm !== "" ? one.vm : [])),
  );
  const vms = [...new Set(is)].filter((vm) => !was?.includes(vm));
  if (!fires(before)) return fires(after) ? [{ is: "fired", vms }] : [];
  if (!fires(after)) return [{ is: "ended", vms: [] }];
  return vms.length > 0 ? [{ is: "joined", vms }] : [];
}

interface AlertRecord {
  source: string;
  /** Fixed when the first delivery came; empty where gatehouse.yml names none. */
  channelId: string;
  group: AlertGroup;
  /** The VMs that labels meant when they came, by ID, because names can be reused. A button names its place in this list. */
  vms: readonly { label: string; id: string }[];
  /** The newest, and how many came before them. */
  events: readonly AlertEvent[];
  told: number;
  /** Made by its buttons, in order. */
  requests: readonly string[];
}

/** Of one group, or of a message for several. */
export interface Posted {
  id: string;
  revision: number;
  createdAt: number;
  delivered: ReturnType<typeof shownIn>;
}

export interface StoredAlert extends Posted {
  record: AlertRecord;
  state: "firing" | "ended";
  changedAt: number;
}

const postedOf = (id: string, fields: Fields): Posted => ({
  id,
  revision: Number(fields["revision"]),
  createdAt: Number(fields["createdAt"]),
  delivered: shownIn(fields),
});

/** Undefined for one that is gone. */
export function parseAlert(id: string, fields: Fields): StoredAlert | undefined {
  const { alert, state } = fields;
  if (!alert || !state) return undefined;
  const record = JSON.parse(alert) as AlertRecord;
  const changedAt = Number(fields["changedAt"]);
  return {
    ...postedOf(id, fields),
    record,
    state: fires(record.group) ? "firing" : "ended",
    changedAt,
  };
}

/** Several groups in one message. */
export interface Overview extends Posted {
  channelId: string;
  memberIds: readonly string[];
}

export function parseOverview(id: string, fields: Fields): Overview | undefined {
  const { channel: channelId } = fields;
  if (!channelId) return undefined;
  return { ...postedOf(id, fields), channelId, memberIds: membersIn(fields) };
}

/** What a delivery means here and now. */
export interface Meaning {
  /** The ID of the one VM that a label names. */
  vmIdOf(label: string): Promise<string | undefined>;
  /** Where a group is told whose VMs these are; empty for nowhere. */
  channelOf(vmIds: readonly string[]): Promise<string>;
}

/** A group that fires again after this time is a new message (ms). */
const anewMs = 10 * 60_000;
const keptMs = 7 * 24 * 3600_000;
/** Longer than any record is kept that it could lead to. */
const pointerMs = 30 * 24 * 3600_000;
const mostEvents = 30;
/** An overview takes further groups for so long (ms). */
const gathersMs = 10 * 60_000;
const maxTries = 20;

export type Alerts = ReturnType<typeof createAlerts>;

/** Groups of alerts as sources tell of them. */
export function createAlerts(redis: RedisClient, key: Keys) {
  const alertKey = (id: string) => key("alert", id);
  const outbox = createOutbox(redis, key("alerts", "outbox"), alertKey);
  const records = createRecords(redis, key, key("alerts", "open"), outbox);
  const now = () => redisNow(redis);
  const get = async (id: string) => parseAlert(id, await outbox.get(id));

  async function getMany(ids: readonly string[]): Promise<StoredAlert[]> {
    const found = await Promise.all(ids.map(get));
    return found.filter((alert) => alert !== undefined);
  }

  /** False, with nothing written, when it changed since it was read. */
  async function move(
    id: string,
    before: StoredAlert | undefined,
    record: AlertRecord,
    audit?: object,
  ): Promise<boolean> {
    const state = fires(record.group) ? "firing" : "ended";
    const how = { id, revision: before?.revision ?? 0, state, final: state === "ended", keptMs };
    const fields = { alert: JSON.stringify(record) };
    return (await records.move({ ...how, audit, fields })) !== undefined;
  }

  /** Its message looks different now, or that of several groups. */
  async function touch(id: string): Promise<void> {
    if (await redis.exists(alertKey(id))) await records.touch(id);
  }

  return {
    outbox,
    now,
    get,
    getMany,
    touch,
    refresh: records.refresh,

    /**
     * Stored when it resolves with what became of it; undefined, with nothing written, when others wrote to the same group all the
     * time. What changes nothing writes nothing.
     */
    async take(source: string, delivery: Delivery, { vmIdOf, channelOf }: Meaning) {
      const base = `a-${shortHash(source, delivery.groupKey)}`;
      if (delivery.alerts.length === 0) return { isChanged: false };
      for (let tries = 0; tries < maxTries; tries++) {
        const at = await now();
        const id = (await redis.getex(key("alert-of", base), "PX", pointerMs)) ?? base;
        const before = await get(id);
        const known = before?.record.group ?? emptyGroup;
        const group = merge(known, delivery, at);
        if (before?.state === "ended" && fires(group) && at - before.changedAt > anewMs) {
          // The next is the same for whoever follows: the pointer only spares the way
          const next = `a-${shortHash(id)}`;
          const past = Object.entries(known.alerts).map(([one, its]) => [one, bare(its)] as const);
          const begun = merge({ ...emptyGroup, alerts: Object.fromEntries(past) }, delivery, at);
          const isBegun = !(await get(next)) && (await write(next, undefined, begun));
          await redis.set(key("alert-of", base), next, "PX", pointerMs);
          if (isBegun) return { id: next, isChanged: true };
          continue;
        }
        const isChanged = await write(id, before, group);
        if (isChanged !== false) return { id, isChanged: isChanged === true };
      }
      return undefined;

      /** False when it changed since it was read; undefined where there is nothing to write. */
      async function write(id: string, before: StoredAlert | undefined, group: AlertGroup) {
        const vms = [...(before?.record.vms ?? [])];
        const known = before?.record.vms.length ?? 0;
        // What a label meant once, it means for as long as the group is open
        for (const label of new Set(detailsOf(group).map(({ vm }) => vm))) {
          const isKnown = label === "" || vms.some((one) => one.label === label);
          const vmId = isKnown ? undefined : await vmIdOf(label);
          if (vmId !== undefined) vms.push({ label, id: vmId });
        }
        const was = before?.record.group;
        if (JSON.stringify(was) === JSON.stringify(group) && vms.length === known) return undefined;
        const record = before?.record ?? {
          source,
          channelId: await channelOf(vms.map((vm) => vm.id)),
          events: [],
          told: 0,
          requests: [],
        };
        const all = [...record.events, ...eventsOf(was ?? emptyGroup, group)];
        const events = all.slice(-mostEvents);
        const told = record.told + all.length - events.length;
        const audit = { what: "alert", source, alert: id, firing: firingIn(group) };
        return move(id, before, { ...record, group, vms, events, told }, audit);
      }
    },

    /** A button has made this request, or it has ended. Idempotent. */
    async note(id: string, request: string): Promise<void> {
      for (let tries = 0; tries < maxTries; tries++) {
        const before = await get(id);
        const { requests = [] } = before?.record ?? {};
        if (!before || requests.includes(request)) return touch(id);
        if (await move(id, before, { ...before.record, requests: [...requests, request] })) return;
      }
    },

    /** The group is told in a message with others. Idempotent; false when it has its own by now. */
    async join({ id, record: { channelId } }: StoredAlert): Promise<boolean> {
      const at = await now();
      const overview = `o-${shortHash(channelId, String(Math.floor(at / gathersMs)))}`;
      await redis
        .multi()
        .hset(alertKey(overview), { channel: channelId, [`member:${id}`]: String(at) })
        .hsetnx(alertKey(overview), "createdAt", at)
        .pexpire(alertKey(overview), keptMs)
        .exec();
      await records.touch(overview);
      return outbox.mark(id, "said:card", "", `shared ${overview}`);
    },

    /** Where the group is told: its own message, or one with others. */
    async placeOf(alert: StoredAlert) {
      const overview = sharedBy(alert.delivered);
      return overview ? placeIn((await outbox.get(overview))["card"]) : alert.delivered.card;
    },

    /** The alerts of these groups that ended after a time (ms), for digests. */
    async endedSince(ids: readonly string[], at: number) {
      const groups = await getMany(ids);
      return groups.flatMap(({ id, record: { group, vms }, state, changedAt }) =>
        detailsOf(group).flatMap(({ name, vm: label, since, endedAt }) => {
          const vmId = vms.find((vm) => vm.label === label)?.id;
          const isNew = endedAt && (endedAt > at || (state === "ended" && changedAt > at));
          return isNew
            ? [{ key: `${id} ${name} ${label}`, name, label, vmId, since, endedAt }]
            : [];
        }),
      );
    },

    /** What fires now, for digests and the Home tab. */
    async firing() {
      const open = await getMany(await records.openIds());
      return open.flatMap(({ id, record: { group, vms } }) =>
        detailsOf(group).flatMap(({ name, vm: label, since, endedAt }) => {
          const vmId = vms.find((vm) => vm.label === label)?.id;
          return endedAt ? [] : [{ key: `${id} ${name} ${label}`, name, label, vmId, since }];
        }),
      );
    },
  };
}
