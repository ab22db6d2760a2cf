import { isSame } from "../../fleet/inventory/contents.ts";
import { isBeforeSetBack } from "../../redis/redis.ts";
import { compareNames } from "../../text/compare-names.ts";
import {
  type Alert,
  type Delivery,
  type Detail,
  type UnreadableAlerts,
  shortHash,
} from "./read-alerts.ts";

/**
 * One alert as far as it is known (times in ms by its source's clock). An alert without `detail` is
 * only counted. Of many alerts, only the first ones keep their texts (`brief`).
 */
interface KnownAlert {
  /**
   * When it began to fire, as its source said last. It can move back: of two Prometheus servers,
   * the one that saw it first wins.
   */
  at: number;
  /** When it ended; undefined while it fires. */
  endedAt?: number;
  /** Set if the source didn't say when it ended: `endedAt` is then when the end arrived (ms by Redis). */
  isEndUntold?: true;
  /**
   * Set if the end arrived before the beginning (ms by Redis). The beginning is still on its way
   * and must not open the alert again.
   */
  overtookAt?: number;
  /** The source left it out of a complete list without telling its end. */
  isMissing?: true;
  /**
   * Set while it fires if the newest delivery doesn't list it: when one last did (ms by Redis). It
   * may have ended since.
   */
  listedAt?: number;
  detail?: Detail;
}

export interface AlertGroup {
  alerts: Readonly<Record<string, KnownAlert>>;
  /**
   * Number of alerts that the newest delivery left out because there were too many. They may fire.
   */
  omitted: number;
  /** Set if alerts of the newest delivery couldn't be read. */
  unreadable?: UnreadableAlerts | undefined;
  told?: Told;
  /** Held deliveries in the order of arrival, at most one for each sender. */
  held?: readonly Held[];
}

/**
 * A delivery that may be older than what was told since. It counts from `from` on (ms by Redis),
 * unless a newer one arrives first.
 */
interface Held {
  from: number;
  delivery: Delivery;
}

/** What the group's deliveries told, to tell a late copy from news (times in ms by Redis). */
interface Told {
  /** When the newest delivery of any sender arrived. */
  heardAt: number;
  /** When the newest delivery was sent, by the sender's clock, if it signs or states that time. */
  sentAt?: number;
  /**
   * The newest states that deliveries told, oldest first: a hash of each, and when it first
   * arrived.
   */
  states: readonly (readonly [hash: string, firstAt: number])[];
  /** The hash of the state that each sender told last. */
  senders: Readonly<Record<string, string>>;
  /** The shortest pause between two states that one sender told. */
  pauseMs?: number;
}

const nothingTold: Told = { heardAt: 0, states: [], senders: {} };

export const emptyGroup: AlertGroup = { alerts: {}, omitted: 0 };

/** The alerts of a group that keep their texts. Name, VM, and severity are kept of all. */
const mostDetailed = 100;
const mostKnown = 4_000;
const mostStates = 8;
const mostSenders = 8;
/** Alerts that ended longer ago are dropped first (ms). */
const pastMs = 3_600_000;
/**
 * How late the copy of a peer can arrive after the first one (ms). Alertmanager's
 * `--cluster.peer-timeout` is 15 s for each peer before it.
 */
const peerLateMs = 60_000;
/** How late a sender's retry can arrive after its next state (ms). */
const retryLateMs = 30_000;
/** Shortest time between two notes that the same state was repeated (ms). */
const heardEveryMs = 60_000;

/**
 * Merges a delivery into its group. A delivery is a snapshot of the group as its sender saw it, and
 * each sender tells one state after the other. So a delivery is news, in the order of arrival. One
 * that may be a late copy is held: it counts once no copy can be under way any more, unless news
 * comes first or its sender takes it back. A delivery moves each of its alerts like this:
 *
 *     unknown ──► fires ◄────────────────┐ fires again, also with the same beginning
 *        │          └──► ended ──────────┘
 *        └──► ended, its beginning may be under way: for a while that opens nothing
 *
 * The end of an earlier firing ends nothing. An alert that a complete list leaves out is no longer
 * reported. Pure. Returns the same object when nothing is news.
 */
export function merge(group: AlertGroup, delivery: Delivery, now: number): AlertGroup {
  const before = settle(group, now);
  const history = before.told ?? nothingTold;
  const state = stateOf(delivery);
  if (isOutdated(before, state, delivery)) return before;
  const from = heldUntil(lateCopyUntil(history, state, delivery, now), now);
  // A sender's later delivery replaces its earlier one. Deliveries of other senders stay.
  if (from > now)
    return withHeld(before, [...heldOfOthers(before, delivery.sender), { from, delivery }]);
  return afterDelivery(before, state, delivery, now);
}

/**
 * Limits how long a delivery is held: if Redis's clock was set back, the stored times lie in the
 * future.
 */
const heldUntil = (from: number, now: number): number => Math.min(from, now + peerLateMs);

/** When the next held delivery starts to count (ms by Redis); undefined when none is held. */
export const nextHeldAt = ({ held = [] }: AlertGroup): number | undefined =>
  held.length > 0 ? Math.min(...held.map(({ from }) => from)) : undefined;

/**
 * Merges every held delivery whose time has come, as of that time. Held deliveries that arrived
 * before it are dropped, because it is newer.
 */
export function settle(group: AlertGroup, now: number): AlertGroup {
  const from = nextHeldAt(group);
  if (from === undefined) return group;
  if (from > now && !isBeforeSetBack(from - peerLateMs, now)) return group;
  const held = group.held ?? [];
  const place = held.findLastIndex((heldDelivery) => heldDelivery.from === from);
  const later = held.slice(place + 1);
  const { delivery } = held[place] as Held;
  const options = { isCertain: true };
  const after = afterDelivery(
    withHeld(group, []),
    stateOf(delivery),
    delivery,
    Math.min(from, now),
    options,
  );
  return settle(withHeld(after, later), now);
}

function withHeld({ held: _held, ...group }: AlertGroup, held: readonly Held[]): AlertGroup {
  return held.length > 0 ? { ...group, held } : group;
}

const heldOfOthers = ({ held = [] }: AlertGroup, sender: string | undefined): readonly Held[] =>
  held.filter(({ delivery }) => delivery.sender !== sender);

/**
 * The group after this delivery. `isCertain`: the delivery was held so long that it can't be a late
 * copy.
 */
function afterDelivery(
  group: AlertGroup,
  state: string,
  delivery: Delivery,
  now: number,
  { isCertain = false } = {},
): AlertGroup {
  const history = group.told ?? nothingTold;
  const all = new Map(Object.entries(group.alerts));
  const doubts: number[] = [];
  for (const alert of delivery.alerts) {
    const before = all.get(alert.key);
    const opensAt = before && !isCertain ? opensFrom(before, alert) : 0;
    if (opensAt > now) doubts.push(opensAt);
    else
      all.set(alert.key, afterTelling(before, alert, { now, isListedFirst: unknownIn(group) > 0 }));
  }
  const listed = new Set(delivery.alerts.map(({ key }) => key));
  const unlisted = [...all].filter(([key, known]) => isFiring(known) && !listed.has(key));
  const dropsFrom = isCertain && delivery.isWhole ? now : mayDropFrom(history, delivery, now);
  for (const [key, { listedAt = history.heardAt, ...known }] of unlisted) {
    const isDropped = dropsFrom <= now;
    all.set(key, { ...known, ...(isDropped ? { endedAt: now, isMissing: true } : { listedAt }) });
  }
  if (dropsFrom > now && dropsFrom < Infinity && unlisted.length > 0) doubts.push(dropsFrom);
  const kept = Object.fromEntries(keptOf(all, now));
  const unkept = [...all].filter(([key, known]) => isFiring(known) && !Object.hasOwn(kept, key));
  const after = {
    alerts: kept,
    // Known firing alerts that aren't listed are among those that the source left out.
    omitted: Math.max(0, delivery.omitted - unlisted.length) + unkept.length,
    ...unreadableIn(delivery, unlisted.length),
    told: afterState(history, state, delivery, now),
  };
  // A sender that repeats the present state brings no news, so deliveries held for other senders
  // stay.
  const [present] = history.states.at(-1) ?? [];
  const stillHeld = state === present ? heldOfOthers(group, delivery.sender) : [];
  const from = heldUntil(Math.max(...doubts), now);
  return withHeld(after, doubts.length > 0 ? [...stillHeld, { from, delivery }] : stillHeld);
}

/** Known firing alerts that a delivery doesn't list are among those of it that can't be read. */
const unreadableIn = ({ unreadable, omitted }: Delivery, unlisted: number) =>
  unreadable && {
    unreadable: {
      ...unreadable,
      open: Math.max(0, unreadable.open - Math.max(0, unlisted - omitted)),
    },
  };

/** A hash of what a delivery says. A retry and a peer's copy have the same hash. */
const stateOf = ({ alerts, omitted, unreadable }: Delivery): string =>
  shortHash(
    [omitted, ...(unreadable ? [unreadable.count, unreadable.open] : [])].join(" "),
    ...alerts.map(({ key, at, endedAt = "" }) => `${key} ${at} ${endedAt}`).toSorted(),
  );

/**
 * True if a newer delivery counted already: the sender's own clock says so (at equal times the end
 * counts), or a process held this one back while a newer state of its group was stored.
 */
function isOutdated(group: AlertGroup, state: string, delivery: Delivery): boolean {
  const { sentAt, arrivedAt = Infinity, alerts } = delivery;
  const { states, sentAt: last } = group.told ?? nothingTold;
  const isKnown = states.some(([known], n) => known === state && n < states.length - 1);
  if (isKnown && arrivedAt < (states.at(-1)?.[1] ?? 0)) return true;
  if (sentAt === undefined || last === undefined || sentAt > last) return false;
  return sentAt < last || (!fires(group) && alerts.every(isFiring));
}

/**
 * Until when a delivery may be the late copy of a state that was replaced since (ms); 0 if it is
 * none. If the sender itself told a later state before, this delivery is news, unless it arrives
 * sooner than this sender ever moves on: then it may be a retry. A delivery of another sender may
 * be the copy of a peer, for as long as peers can be late.
 */
function lateCopyUntil(
  { states, senders, pauseMs = Infinity }: Told,
  state: string,
  { sender = "" }: Delivery,
  now: number,
): number {
  const place = (hash: string | undefined) => states.findIndex(([known]) => known === hash);
  const [at, own] = [place(state), place(senders[sender])];
  if (at < 0 || at === states.length - 1) return 0;
  const firstAt = states[at]?.[1] ?? 0;
  if (own <= at) return firstAt + peerLateMs;
  const ownAt = states[own]?.[1] ?? 0;
  const isTooSoon = now - ownAt < Math.min(retryLateMs, pauseMs / 2);
  return isTooSoon ? ownAt + retryLateMs : 0;
}

/**
 * From when on this delivery may open an alert that has ended (ms). The alert's end may have
 * overtaken its beginning.
 */
function opensFrom({ overtookAt, endedAt = 0 }: KnownAlert, { at, endedAt: end }: Alert): number {
  const isOvertaken = end === undefined && overtookAt !== undefined && at <= endedAt;
  return isOvertaken ? overtookAt + peerLateMs : 0;
}

/**
 * One alert after a delivery told of it. `isListedFirst`: alerts were left out of the list before,
 * and this one may have been among them when it began.
 */
function afterTelling(
  before: KnownAlert | undefined,
  alert: Alert,
  { now, isListedFirst }: { now: number; isListedFirst: boolean },
): KnownAlert {
  const { key: _key, at, endedAt, ...detail } = alert;
  if (endedAt === undefined) return { at, detail };
  const end = endOf(endedAt, now);
  if (!before) return { at, ...end, ...(isListedFirst ? {} : { overtookAt: now }), detail };
  if (isFiring(before)) {
    const isOfEarlier = at < before.at && end.endedAt < before.at;
    return isOfEarlier ? before : { at, ...end, detail };
  }
  if (before.isMissing) return { at, ...end, detail };
  return end.endedAt > (before.endedAt ?? 0)
    ? { ...before, ...end, detail }
    : { ...before, detail };
}

/** A source's clock may be ahead of Redis's by this much without being wrong (ms). */
const clockSlackMs = 1_000;

/**
 * The end of an alert whose source says that it ended at `endedAt`. Some sources don't say when:
 * Grafana and older Prometheus rules send the year 1. An end after its arrival is by a clock that is
 * wrong, so nobody knows when it was.
 */
function endOf(
  endedAt: number,
  now: number,
): Pick<KnownAlert, "isEndUntold"> & { endedAt: number } {
  if (endedAt <= 0 || endedAt > now + clockSlackMs) return { endedAt: now, isEndUntold: true };
  return { endedAt: Math.min(endedAt, now) };
}

/**
 * From when on an alert that a complete list leaves out counts as no longer reported (ms). What
 * another sender told just now may be newer than the list.
 */
function mayDropFrom({ senders, states, heardAt }: Told, delivery: Delivery, now: number): number {
  if (!delivery.isWhole) return Infinity;
  const [present] = states.at(-1) ?? [];
  const isNext = senders[delivery.sender ?? ""] === present;
  return isNext || !delivery.alerts.some(isFiring) ? now : heardAt + peerLateMs;
}

function afterState(history: Told, state: string, delivery: Delivery, now: number): Told {
  const { sender = "", sentAt = history.sentAt, arrivedAt = now } = delivery;
  // A held delivery tells of the time when it arrived, not of the one when it counts.
  const heardAt = Math.min(now, Math.max(history.heardAt, arrivedAt));
  const [present] = history.states.at(-1) ?? [];
  const isPresent = state === present;
  const own = history.states.find(([hash]) => hash === history.senders[sender]);
  const pauseMs =
    own && own[0] !== state ? Math.min(history.pauseMs ?? Infinity, now - own[1]) : history.pauseMs;
  const others = Object.entries(history.senders).filter(([otherSender]) => otherSender !== sender);
  const states = history.states.filter(([hash]) => hash !== state);
  const senders = [...others, [sender, state]].slice(-mostSenders);
  return {
    heardAt: isPresent && now - history.heardAt < heardEveryMs ? history.heardAt : heardAt,
    ...(sentAt === undefined ? {} : { sentAt }),
    states: isPresent ? history.states : [...states, [state, now] as const].slice(-mostStates),
    senders: history.senders[sender] === state ? history.senders : Object.fromEntries(senders),
    ...(pauseMs === undefined ? {} : { pauseMs }),
  };
}

/**
 * The alerts to keep: firing ones first, then those that ended within `pastMs`, then the others.
 * Only the first ones keep their texts.
 */
function keptOf(all: ReadonlyMap<string, KnownAlert>, now: number): [string, KnownAlert][] {
  const isPast = ({ endedAt = now }: KnownAlert) => Number(endedAt < now - pastMs);
  const hasEnded = (known: KnownAlert) => Number(!isFiring(known));
  const byKey = ([a]: [string, KnownAlert], [b]: [string, KnownAlert]) => (a < b ? -1 : 1);
  return [...all]
    .toSorted(
      (a, b) => hasEnded(a[1]) - hasEnded(b[1]) || isPast(a[1]) - isPast(b[1]) || byKey(a, b),
    )
    .slice(0, mostKnown)
    .map(([key, known], n): [string, KnownAlert] => [key, n < mostDetailed ? known : brief(known)])
    .toSorted(byKey);
}

/**
 * The alert without its texts: what it is, where it fires, and whom it calls can't depend on how
 * many others fire.
 */
function brief({ detail, ...known }: KnownAlert): KnownAlert {
  if (!detail) return known;
  const { name, vm, severity, since } = detail;
  return { ...known, detail: { name, vm, severity, since, summary: "" } };
}

const bare = ({ detail: _detail, ...known }: KnownAlert): KnownAlert => known;

/** The group that a new message begins with: the same alerts and senders, without details. */
export const bareGroup = (group: AlertGroup): AlertGroup => ({
  ...group,
  alerts: Object.fromEntries(
    Object.entries(group.alerts).map(([key, known]) => [key, bare(known)]),
  ),
});

/**
 * Takes all firing alerts as over, because nothing was heard of them or nobody tells of them any
 * more.
 */
export function endAll(group: AlertGroup, now: number): AlertGroup {
  const alerts = Object.entries(group.alerts).map(([key, known]): [string, KnownAlert] => [
    key,
    isFiring(known) ? { ...known, endedAt: now, isMissing: true } : known,
  ]);
  const { unreadable: _unreadable, ...known } = group;
  return { ...known, alerts: Object.fromEntries(alerts), omitted: 0 };
}

const statesOf = ({ alerts, omitted, unreadable }: AlertGroup) => [alerts, omitted, unreadable];

/** Whether two groups have the same alerts, ignoring who told of them. */
export const saysTheSame = (group: AlertGroup, other: AlertGroup): boolean =>
  isSame(statesOf(group), statesOf(other));

export const isFiring = ({ endedAt }: { endedAt?: number | undefined }) => endedAt === undefined;

/** Number of alerts that may fire, though nothing else is known of them. */
export const unknownIn = ({ omitted, unreadable }: AlertGroup): number =>
  omitted + (unreadable?.open ?? 0);

/** Whether the group fires. Alerts that may fire count as firing. */
export const fires = (group: AlertGroup): boolean => firingIn(group) > 0;

export const firingIn = (group: AlertGroup): number =>
  Object.values(group.alerts).filter(isFiring).length + unknownIn(group);

export interface ShownAlert extends Detail {
  endedAt: number | undefined;
  /** Whether `endedAt` is by its source. */
  isEndTold: boolean;
  isMissing: boolean;
  /** When a delivery last listed it (ms by Redis), and whether the newest one left it out. */
  heardAt: number;
  isLeftOut: boolean;
}

/** Keeps the lists of `detailsOf` by their groups, because a message asks for one dozens of times. */
const listedOf = new WeakMap<AlertGroup, readonly ShownAlert[]>();

/** The alerts with details: firing ones first, then by the time they began. */
export function detailsOf(group: AlertGroup): readonly ShownAlert[] {
  const listed = listedOf.get(group) ?? listDetails(group);
  listedOf.set(group, listed);
  return listed;
}

function listDetails({ alerts, told: history }: AlertGroup): ShownAlert[] {
  const ended = (alert: { endedAt: number | undefined }) => Number(!isFiring(alert));
  return Object.values(alerts)
    .flatMap(({ detail, endedAt, isEndUntold = false, isMissing = false, listedAt }) => {
      const isEndTold = !isEndUntold && !isMissing;
      const heardAt = listedAt ?? history?.heardAt ?? 0;
      const isLeftOut = listedAt !== undefined;
      return detail ? [{ ...detail, endedAt, isEndTold, isMissing, heardAt, isLeftOut }] : [];
    })
    .toSorted((a, b) => ended(a) - ended(b) || a.since - b.since || compareNames(a.vm, b.vm));
}
