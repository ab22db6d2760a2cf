import { createOutbox, shownIn } from "../redis/due-list.ts";
import { createRecords } from "../redis/record.ts";
import { type Fields, fieldsNamed, type Keys, type RedisClient, redisNow } from "../redis/redis.ts";
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
    if (!before || isLater(told, before)) all.set(key, told);
  }
  const isPast = ({ endedAt = now }: Known) => endedAt < now - pastMs;
  const byKey = ([a]: [string, Known], [b]: [string, Known]) => (a < b ? -1 : 1);
  const kept = [...all]
    .toSorted((a, b) => Number(isPast(a[1])) - Number(isPast(b[1])) || byKey(a, b))
    .slice(0, mostKnown)
    .map(([key, known], n): [string, Known] => [key, n < mostDetailed ? known : bare(known)]);
  return {
    alerts: Object.fromEntries(kept.toSorted(byKey)),
    omitted: Math.max(group.omitted, omitted),
  };
}

const bare = ({ detail: _, ...known }: Known): Known => known;

function isLater(one: Known, other: Known): boolean {
  const [a, b] = [one, other].map(({ at, endedAt = 0, detail }) => ({
    numbers: [at, endedAt],
    // Two peers may word it differently: the same one counts, whichever comes last
    text: JSON.stringify(detail ?? ""),
  }));
  if (!a || !b) return false;
  const n = a.numbers.findIndex((number, index) => number !== b.numbers[index]);
  return n < 0 ? a.text > b.text : (a.numbers[n] ?? 0) > (b.numbers[n] ?? 0);
}

export const isFiring = ({ endedAt }: { endedAt?: number | undefined }) => endedAt === undefined;

/** Those that fire first, then by their times. */
export function detailsOf({ alerts }: AlertGroup): (Detail & { endedAt: number | undefined })[] {
  return Object.values(alerts)
    .flatMap(({ detail, endedAt }) => (detail ? [{ ...detail, endedAt }] : []))
    .toSorted(
      (a, b) =>
        Number(isFiring(b)) - Number(isFiring(a)) || a.since - b.since || (a.vm < b.vm ? -1 : 1),
    );
}

export const firingIn = ({ alerts, omitted }: AlertGroup): number =>
  Object.values(alerts).filter(isFiring).length + omitted;

/** What its thread tells. The first is on its card. */
export interface AlertEvent {
  is: "fired" | "joined" | "ended";
  at: number;
  /** Labels of VMs. */
  vms: readonly string[];
}

/** Who pressed what. */
export interface AlertPress {
  by: string;
  did: string;
  at: number;
}

interface AlertRecord {
  source: string;
  /** Fixed when the first delivery came; empty where gatehouse.yml names none. */
  channelId: string;
  group: AlertGroup;
  /** The VMs that labels meant when they came, by ID, because names can be reused. A button names its place in this list. */
  vms: readonly { label: string; id: string }[];
  events: readonly AlertEvent[];
  /** The newest, and how many there were. */
  presses: readonly AlertPress[];
  pressed: number;
}

export interface StoredAlert extends AlertRecord {
  id: string;
  state: "firing" | "ended";
  revision: number;
  createdAt: number;
  changedAt: number;
  delivered: ReturnType<typeof shownIn> & { shown: string };
}

/** Undefined for one that is gone. */
export function parseAlert(id: string, fields: Fields): StoredAlert | undefined {
  const { alert, state, revision, createdAt, changedAt, shown = "" } = fields;
  if (!alert || !state) return undefined;
  return {
    ...(JSON.parse(alert) as AlertRecord),
    id,
    state: state === "firing" ? state : "ended",
    revision: Number(revision),
    createdAt: Number(createdAt),
    changedAt: Number(changedAt),
    delivered: { ...shownIn(fields), shown },
  };
}

/** Several groups in one message. */
export interface Overview {
  id: string;
  channelId: string;
  createdAt: number;
  revision: number;
  memberIds: readonly string[];
  delivered: StoredAlert["delivered"];
}

export function parseOverview(id: string, fields: Fields): Overview | undefined {
  const { channel: channelId, revision, createdAt, shown = "" } = fields;
  if (!channelId) return undefined;
  const members = fieldsNamed("member:", fields).toSorted(([, a], [, b]) => Number(a) - Number(b));
  return {
    id,
    channelId,
    revision: Number(revision),
    createdAt: Number(createdAt),
    memberIds: members.map(([member]) => member),
    delivered: { ...shownIn(fields), shown },
  };
}

/** The overview that shows this group. */
export const overviewOf = ({ delivered }: Pick<StoredAlert, "delivered">): string | undefined =>
  /^shared (.+)/.exec(delivered.said["card"] ?? "")?.[1];

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
const mostPresses = 3;
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
    const pipeline = redis.pipeline();
    for (const id of ids) pipeline.hgetall(alertKey(id));
    return ((await pipeline.exec()) ?? []).flatMap(([error, fields], index) => {
      if (error) throw error;
      return parseAlert(ids[index] ?? "", fields as Fields) ?? [];
    });
  }

  async function move(
    id: string,
    before: StoredAlert | undefined,
    record: AlertRecord,
    audit?: object,
  ): Promise<boolean> {
    const state = Object.values(record.group.alerts).some(isFiring) ? "firing" : "ended";
    const fields = { alert: JSON.stringify(record) };
    const how = { id, revision: before?.revision ?? 0, state, final: state === "ended", keptMs };
    return (await records.move({ ...how, audit, fields })) !== undefined;
  }

  /** Its message has changed without it. */
  async function touch(id: string): Promise<void> {
    const at = await now();
    await redis.multi().hincrby(alertKey(id), "revision", 1).zadd(outbox.list, at, id).exec();
    outbox.ring();
  }

  return {
    outbox,
    now,
    get,
    getMany,
    touch,
    openIds: records.openIds,
    /** What fires now, for digests and the Home tab. */
    async firing() {
      const open = await getMany(await records.openIds());
      return open.flatMap(({ id, group, vms }) =>
        detailsOf(group).flatMap(({ name, vm: label, since, endedAt }) => {
          const vmId = vms.find((vm) => vm.label === label)?.id;
          return endedAt ? [] : [{ key: `${id} ${name} ${label}`, name, label, vmId, since }];
        }),
      );
    },

    /**
     * Stored when it resolves with what became of it; undefined, with nothing written, when others wrote to the same group all the
     * time. What changes nothing writes nothing.
     */
    async take(source: string, delivery: Delivery, meaning: Meaning) {
      await redis.hset(key("alerts", "seen"), source, await now());
      if (delivery.alerts.length === 0) return { isChanged: false };
      const base = `a-${shortHash(source, delivery.groupKey)}`;
      const pointer = key("alert-of", base);
      for (let tries = 0; tries < maxTries; tries++) {
        const at = await now();
        const id = (await redis.getex(pointer, "PX", pointerMs)) ?? base;
        const before = await get(id);
        const group = merge(before?.group ?? emptyGroup, delivery, at);
        const fires = Object.values(group.alerts).some(isFiring);
        if (before?.state === "ended" && fires && at - before.changedAt > anewMs) {
          // The next is the same for whoever follows: the pointer only spares the way
          const next = `a-${shortHash(id)}`;
          const past = { alerts: mapValues(before.group.alerts, bare), omitted: 0 };
          const isBegun = !(await get(next)) && (await begin(next, merge(past, delivery, at), at));
          await redis.set(pointer, next, "PX", pointerMs);
          if (isBegun) return { id: next, isChanged: true };
          continue;
        }
        if (!before && (await begin(id, group, at))) return { id, isChanged: true };
        if (!before) continue;
        const vms = await meant(before.vms, group);
        const isSame = JSON.stringify(before.group) === JSON.stringify(group);
        if (isSame && vms.length === before.vms.length) return { id, isChanged: false };
        const events = [...before.events, ...eventsOf(before.group, group, at)];
        const record = { ...recordOf(before), group, vms, events: events.slice(0, mostEvents) };
        if (await move(id, before, record, audit(id, group))) return { id, isChanged: true };
      }
      return undefined;

      async function begin(id: string, group: AlertGroup, at: number): Promise<boolean> {
        const vms = await meant([], group);
        const channelId = await meaning.channelOf(vms.map((vm) => vm.id));
        const events = eventsOf(emptyGroup, group, at);
        const record = { source, channelId, group, vms, events, presses: [], pressed: 0 };
        return move(id, undefined, record, audit(id, group));
      }

      /** What a label meant once, it means for as long as the group is open. */
      async function meant(known: AlertRecord["vms"], group: AlertGroup) {
        const all = [...known];
        for (const label of new Set(detailsOf(group).map(({ vm }) => vm))) {
          if (label === "" || all.some((one) => one.label === label)) continue;
          const id = await meaning.vmIdOf(label);
          if (id !== undefined) all.push({ label, id });
        }
        return all;
      }

      function audit(alert: string, group: AlertGroup) {
        const [all, firing] = [Object.keys(group.alerts).length, firingIn(group)];
        return { what: "alert", source, alert, firing, known: all };
      }
    },

    /** Who is on it. Once for each button: `n` counts the presses that its message had seen. */
    async note(id: string, press: Omit<AlertPress, "at">, n: number): Promise<void> {
      for (let tries = 0; tries < maxTries; tries++) {
        const before = await get(id);
        if (!before || before.pressed !== n) return;
        const presses = [...before.presses, { ...press, at: await now() }].slice(-mostPresses);
        if (await move(id, before, { ...recordOf(before), presses, pressed: n + 1 })) return;
      }
    },

    /** The group is told in a message with others. Idempotent. */
    async join({ id, channelId }: Pick<StoredAlert, "id" | "channelId">): Promise<boolean> {
      const at = await now();
      const overview = `o-${shortHash(channelId, String(Math.floor(at / gathersMs)))}`;
      const hash = alertKey(overview);
      await redis
        .multi()
        .hsetnx(hash, "createdAt", at)
        .hset(hash, { channel: channelId, [`member:${id}`]: at })
        .hincrby(hash, "revision", 1)
        .pexpire(hash, keptMs)
        .zadd(outbox.list, "NX", at, overview)
        .exec();
      outbox.ring();
      return outbox.mark(id, "said:card", "", `shared ${overview}`);
    },

    /** Messages of open groups look different now: changes were frozen, or are allowed again. */
    async refresh(): Promise<void> {
      for (const id of await records.openIds()) await touch(id);
    },

    /** When each source was last heard of (ms, Redis time). */
    async lastSeen(): Promise<ReadonlyMap<string, number>> {
      const seen = Object.entries(await redis.hgetall(key("alerts", "seen")));
      return new Map(seen.map(([source, at]) => [source, Number(at)]));
    },
  };
}

function recordOf(alert: StoredAlert): AlertRecord {
  const { source, channelId, group, vms, events, presses, pressed } = alert;
  return { source, channelId, group, vms, events, presses, pressed };
}

const mapValues = <T, R>(all: Readonly<Record<string, T>>, to: (one: T) => R) =>
  Object.fromEntries(Object.entries(all).map(([key, one]) => [key, to(one)]));

/** What a thread tells of a change. */
function eventsOf(before: AlertGroup, after: AlertGroup, at: number): AlertEvent[] {
  const firing = (group: AlertGroup) => [
    ...new Set(detailsOf(group).flatMap((one) => (isFiring(one) && one.vm ? [one.vm] : []))),
  ];
  const [was, is] = [before, after].map(({ alerts }) => Object.values(alerts).some(isFiring));
  const known = new Set(firing(before));
  const vms = firing(after).filter((vm) => !known.has(vm));
  if (!was && is) return [{ is: "fired", at, vms }];
  if (was && !is) return [{ is: "ended", at, vms: [] }];
  return is && vms.length > 0 ? [{ is: "joined", at, vms }] : [];
}
