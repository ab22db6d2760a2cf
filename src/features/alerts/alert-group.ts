import { isBeforeSetBack } from "../../redis/redis.ts";
import { type Alert, type Delivery, type Detail, shortHash } from "./read-alerts.ts";

/** What is known of one alert (times in ms by its source's clock). Without details it is only counted. */
interface KnownAlert {
  /** When it began to fire, as its source said last. It can move back: the earliest of two Prometheus wins. */
  at: number;
  /** Undefined while it fires. */
  endedAt?: number;
  /** When its end came, where that overtook the word that it fires (ms by Redis): that word is still on its way, and opens nothing. */
  overtookAt?: number;
  /** Its source left it out of a whole list, without telling its end. */
  isMissing?: true;
  detail?: Detail;
}

export interface AlertGroup {
  alerts: Readonly<Record<string, KnownAlert>>;
  /** Alerts that fire, or may, and that the newest delivery left out because there were too many. */
  omitted: number;
  told?: Told;
  /** In the order of their arrival, at most one of each sender. */
  held?: readonly Held[];
}

/** A delivery that may be older than what was told since: it counts from a time on (ms by Redis), unless something newer comes first. */
interface Held {
  from: number;
  delivery: Delivery;
}

/** Which deliveries a group is made of, so that a late copy is told from news (times in ms by Redis). */
interface Told {
  /** The newest delivery of any sender. */
  heardAt: number;
  /** By the sender's own clock, where it signs or states when it sent the delivery. */
  sentAt?: number;
  /** The newest states that deliveries told, oldest first: a hash of each, and when it came first. */
  states: readonly (readonly [hash: string, firstAt: number])[];
  /** By sender, the hash of the state that it told last. */
  senders: Readonly<Record<string, string>>;
  /** The shortest pause between two states that one sender told. */
  pauseMs?: number;
}

const nothingTold: Told = { heardAt: 0, states: [], senders: {} };

export const emptyGroup: AlertGroup = { alerts: {}, omitted: 0 };

const mostDetailed = 100;
const mostKnown = 1_000;
const mostStates = 8;
const mostSenders = 8;
/** What ended so long ago makes room for others (ms). */
const pastMs = 3_600_000;
/** A peer's copy comes at most so long after the first one: `--cluster.peer-timeout` is 15 s for each peer before it (ms). */
const peerLateMs = 60_000;
/** A sender's own copy comes at most so long after its next state (ms). */
const retryLateMs = 30_000;
/** Repetitions of one state are noted at most this often (ms). */
const heardEveryMs = 10 * 60_000;

/**
 * A group after a delivery. A delivery is a snapshot of its group as its sender saw it, and each sender tells one state after the
 * other. So a delivery counts as news, in the order of arrival. What may be a late copy instead is held: it counts once no copy can
 * be under way any more, unless news comes first, or its sender takes it back. Of each alert a delivery tells:
 *
 *     unknown ──► fires ◄────────────────┐ fires again, also with the same beginning
 *        │          └──► ended ──────────┘
 *        └──► ended, its beginning may be under way: for a while that opens nothing
 *
 * The end of an earlier firing ends nothing. What a whole list leaves out is no longer reported. Pure.
 * It returns the same object where nothing is news.
 */
export function merge(group: AlertGroup, delivery: Delivery, now: number): AlertGroup {
  const before = settle(group, now);
  const told = before.told ?? nothingTold;
  const state = stateOf(delivery);
  if (isOutdated(before, state, delivery)) return before;
  const from = heldUntil(lateCopyUntil(told, state, delivery, now), now);
  // A sender's later delivery replaces its earlier one; those of others stay
  if (from > now)
    return withHeld(before, [...heldOfOthers(before, delivery.sender), { from, delivery }]);
  return afterDelivery(before, state, delivery, now);
}

/** No delivery is held for longer: what was told before Redis's clock was set back lies in the future. */
const heldUntil = (from: number, now: number): number => Math.min(from, now + peerLateMs);

/** When the next held delivery counts (ms by Redis). */
export const nextHeldAt = ({ held = [] }: AlertGroup): number | undefined =>
  held.length > 0 ? Math.min(...held.map(({ from }) => from)) : undefined;

/** Merges each held delivery whose time has come. It is news since it arrived, so what arrived before it no longer counts. */
export function settle(group: AlertGroup, now: number): AlertGroup {
  const from = nextHeldAt(group);
  if (from === undefined) return group;
  if (from > now && !isBeforeSetBack(from - peerLateMs, now)) return group;
  const held = group.held ?? [];
  const place = held.findLastIndex((one) => one.from === from);
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

/** `isCertain`: it was held for as long as a copy can be late. */
function afterDelivery(
  group: AlertGroup,
  state: string,
  delivery: Delivery,
  now: number,
  { isCertain = false } = {},
): AlertGroup {
  const told = group.told ?? nothingTold;
  const all = new Map(Object.entries(group.alerts));
  const doubts: number[] = [];
  for (const alert of delivery.alerts) {
    const before = all.get(alert.key);
    const opensAt = before && !isCertain ? opensFrom(before, alert) : 0;
    if (opensAt > now) doubts.push(opensAt);
    else all.set(alert.key, afterTelling(before, alert, { now, isListedFirst: group.omitted > 0 }));
  }
  const listed = new Set(delivery.alerts.map(({ key }) => key));
  const unlisted = [...all].filter(([key, known]) => isFiring(known) && !listed.has(key));
  const dropsFrom = isCertain ? now : mayDropFrom(told, delivery, now);
  if (dropsFrom <= now)
    for (const [key, known] of unlisted) all.set(key, { ...known, endedAt: now, isMissing: true });
  else if (unlisted.length > 0 && dropsFrom < Infinity) doubts.push(dropsFrom);
  const after = {
    alerts: Object.fromEntries(keptOf(all, now)),
    // Those known to fire are among the ones left out
    omitted: Math.max(0, delivery.omitted - unlisted.length),
    told: afterState(told, state, delivery, now),
  };
  // Another sender that repeats the present state tells no news
  const [present] = told.states.at(-1) ?? [];
  const stillHeld = state === present ? heldOfOthers(group, delivery.sender) : [];
  const from = heldUntil(Math.max(...doubts), now);
  return withHeld(after, doubts.length > 0 ? [...stillHeld, { from, delivery }] : stillHeld);
}

/** What a delivery says, whoever sends it: the same for a retry and for a peer's copy. */
const stateOf = ({ alerts, omitted }: Delivery): string =>
  shortHash(
    String(omitted),
    ...alerts.map(({ key, at, endedAt = "" }) => `${key} ${at} ${endedAt}`).toSorted(),
  );

/**
 * The sender's own clock says that a newer delivery came before; at one time the end counts. Or a process has held it back since it
 * came, and a newer state of its group was stored meanwhile.
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
 * Until when a delivery may be the late copy of a state that another one has replaced since (ms); 0 where it is none. A sender that
 * has told a later state itself went on since then, so what it says now is news, unless it comes sooner than this sender ever goes
 * on: then it may be a retry. From another sender it may be the copy of a peer, as long as peers can be late.
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

/** From when on a delivery that says that it fires opens what has ended (ms): its beginning may have been under way. */
function opensFrom({ overtookAt, endedAt = 0 }: KnownAlert, { at, endedAt: end }: Alert): number {
  const isOvertaken = end === undefined && overtookAt !== undefined && at <= endedAt;
  return isOvertaken ? overtookAt + peerLateMs : 0;
}

/** `isListedFirst`: some were left out of the list before, and it may have been among them when it began. */
function afterTelling(
  before: KnownAlert | undefined,
  alert: Alert,
  { now, isListedFirst }: { now: number; isListedFirst: boolean },
): KnownAlert {
  const { key: _key, at, endedAt, ...detail } = alert;
  if (endedAt === undefined) return { at, detail };
  // Some say that it ended, and not when: Grafana and older rules send the year 1
  const end = endedAt > 0 ? endedAt : now;
  if (!before) return { at, endedAt: end, ...(isListedFirst ? {} : { overtookAt: now }), detail };
  if (isFiring(before)) {
    const isOfEarlier = at < before.at && end < before.at;
    return isOfEarlier ? before : { at, endedAt: end, detail };
  }
  if (before.isMissing) return { at, endedAt: end, detail };
  return { ...before, endedAt: Math.max(before.endedAt ?? 0, end), detail };
}

/** From when on what a list leaves out is taken as not reported (ms): what another sender told just now may be newer than the list. */
function mayDropFrom({ senders, states, heardAt }: Told, delivery: Delivery, now: number): number {
  if (!delivery.isWhole) return Infinity;
  const [present] = states.at(-1) ?? [];
  const isNext = senders[delivery.sender ?? ""] === present;
  return isNext || !delivery.alerts.some(isFiring) ? now : heardAt + peerLateMs;
}

function afterState(told: Told, state: string, delivery: Delivery, now: number): Told {
  const { sender = "", sentAt = told.sentAt } = delivery;
  const [present] = told.states.at(-1) ?? [];
  const isSame = state === present;
  const own = told.states.find(([hash]) => hash === told.senders[sender]);
  const pauseMs =
    own && own[0] !== state ? Math.min(told.pauseMs ?? Infinity, now - own[1]) : told.pauseMs;
  const others = Object.entries(told.senders).filter(([one]) => one !== sender);
  const states = told.states.filter(([hash]) => hash !== state);
  const senders = [...others, [sender, state]].slice(-mostSenders);
  return {
    heardAt: isSame && now - told.heardAt < heardEveryMs ? told.heardAt : now,
    ...(sentAt === undefined ? {} : { sentAt }),
    states: isSame ? told.states : [...states, [state, now] as const].slice(-mostStates),
    senders: told.senders[sender] === state ? told.senders : Object.fromEntries(senders),
    ...(pauseMs === undefined ? {} : { pauseMs }),
  };
}

/** What fires comes first, with its details; then what ended last. */
function keptOf(all: ReadonlyMap<string, KnownAlert>, now: number): [string, KnownAlert][] {
  const isPast = ({ endedAt = now }: KnownAlert) => Number(endedAt < now - pastMs);
  const hasEnded = (known: KnownAlert) => Number(!isFiring(known));
  const byKey = ([a]: [string, KnownAlert], [b]: [string, KnownAlert]) => (a < b ? -1 : 1);
  return [...all]
    .toSorted(
      (a, b) => hasEnded(a[1]) - hasEnded(b[1]) || isPast(a[1]) - isPast(b[1]) || byKey(a, b),
    )
    .slice(0, mostKnown)
    .map(([key, known], n): [string, KnownAlert] => [key, n < mostDetailed ? known : bare(known)])
    .toSorted(byKey);
}

const bare = ({ detail: _detail, ...known }: KnownAlert): KnownAlert => known;

/** What a new message begins with: the same alerts and senders, without what was said of them. */
export const bareGroup = (group: AlertGroup): AlertGroup => ({
  ...group,
  alerts: Object.fromEntries(
    Object.entries(group.alerts).map(([key, known]) => [key, bare(known)]),
  ),
});

/** All that fires is taken as over: nothing was heard of it, or nobody tells of it any more. */
export function endAll(group: AlertGroup, now: number): AlertGroup {
  const alerts = Object.entries(group.alerts).map(([key, known]): [string, KnownAlert] => [
    key,
    isFiring(known) ? { ...known, endedAt: now, isMissing: true } : known,
  ]);
  return { ...group, alerts: Object.fromEntries(alerts), omitted: 0 };
}

/** Whether two groups say the same, whoever told it. */
export const saysTheSame = (one: AlertGroup, other: AlertGroup): boolean =>
  JSON.stringify([one.alerts, one.omitted]) === JSON.stringify([other.alerts, other.omitted]);

export const isFiring = ({ endedAt }: { endedAt?: number | undefined }) => endedAt === undefined;

/** What was left out may fire: only a whole list says that it doesn't. */
export const fires = ({ alerts, omitted }: AlertGroup): boolean =>
  omitted > 0 || Object.values(alerts).some(isFiring);

export const firingIn = ({ alerts, omitted }: AlertGroup): number =>
  Object.values(alerts).filter(isFiring).length + omitted;

export interface ShownAlert extends Detail {
  endedAt: number | undefined;
  isMissing: boolean;
}

/** Those that fire first, then by their times. */
export function detailsOf({ alerts }: AlertGroup): ShownAlert[] {
  const ended = (one: { endedAt: number | undefined }) => Number(!isFiring(one));
  return Object.values(alerts)
    .flatMap(({ detail, endedAt, isMissing = false }) =>
      detail ? [{ ...detail, endedAt, isMissing }] : [],
    )
    .toSorted((a, b) => ended(a) - ended(b) || a.since - b.since || (a.vm < b.vm ? -1 : 1));
}
