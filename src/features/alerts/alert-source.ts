import { hash } from "node:crypto";
import type { AfterNote } from "../../attestation/render-attestation.ts";
import { type Compute } from "../../fleet/compute/compute.ts";
import type { Policy } from "../../config/policy-file.ts";
import { sectionOf } from "../../config/policy-section.ts";
import type { Inventory } from "../../fleet/inventory/inventory.ts";
import type { Log } from "../../log/log.ts";
import type { Fact } from "../../core/facts/fact.ts";
import type { FactReader, FactsAbout } from "../../core/facts/facts-about.ts";
import { readerWithin } from "../../core/facts/reader-within.ts";
import { scopeOfChannel } from "../../core/permit/access.ts";
import { isRunIn } from "../../core/permit/refusal.ts";
import { type Board, boardOf, parseBoard } from "../../redis/board.ts";
import type { Fields } from "../../redis/redis.ts";
import {
  type ChangeCommand,
  type Command,
  type Target,
  dottedName,
  isChange,
  requestable,
} from "../../registry/define.ts";
import type { Journal } from "../../core/request/journal.ts";
import { insteadInError } from "../../core/cards/render-result.ts";
import { targetOf } from "../../core/submit/resolve-targets.ts";
import type { Source } from "../../core/deliver/deliver.ts";
import {
  type Owed,
  type Relocation,
  anewMark,
  isSaid,
  paced,
} from "../../core/deliver/post-once.ts";
import { type Alerts, detailsOf, isFiring, type StoredAlert, parseAlert } from "./alerts.ts";
import { closedIn, openPlace, tryAgainMs } from "../../core/deliver/open-place.ts";
import {
  type View,
  type Vm,
  firingOn,
  isRestart,
  mostWithControls,
  renderAlert,
  renderCall,
  renderEvents,
  renderMoved,
} from "./render-alert.ts";
import type { ChannelCalls } from "./channel-calls.ts";
import { newsAt } from "./tell-features.ts";
import { groupsByVm, renderOverview } from "./render-overview.ts";
import { readAdvice } from "./read-advice.ts";
import type { RemedyPart } from "../alert-part.ts";
import { highestRank } from "./severity-rank.ts";
import { calledFor, sourcesSection } from "./sources.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { deadlineMs, deadlineSignal } from "../../deadline.ts";

/**
 * How many VMs are read at a time, even in a storm of alerts: changes need the compute service
 * more.
 */
const readsAtOnce = 10;
const readWithinMs = 1_000;
const mostListed = 20;
/** Commands offered on each VM, before those of the source's `offer`. */
const usual = ["vm.show", "vm.metrics", "vm.restart", "vm.start"];
const mostPresses = 3;
/** How long a card waits for its turn in the channel before its group joins an overview (ms). */
const ownCardMs = 3_000;

/** How often a group whose card stands in another channel tries its own one again (ms). */
const homeAgainMs = 30_000;

/** The key of the message that called a person or a group for this firing of an alert group. */
const callFor = (who: string, firing: number) => `call:${who}${firing > 1 ? ` ${firing}` : ""}`;

/** How soon a group looks whether another one has called for both (ms). */
const lookAgainMs = 1_000;

/** Somebody whom no message has called yet. `key` is that of the message that will. */
interface Uncalled {
  who: string;
  key: string;
  rank: number;
  urgentAt: number;
}

/** The present: Redis time (ms), and the freeze. */
type Now = Pick<View, "frozen"> & { now: number };

/**
 * Source of the messages of alerts: a card that is edited, and notes in its thread. If the channel
 * takes no card now, the group joins an overview, which is edited too.
 */
export function alertSource(options: {
  alerts: Alerts;
  calls: ChannelCalls;
  store: Pick<Journal, "freezeState" | "getMany" | "recentIds">;
  inventory: Pick<Inventory, "seenIn">;
  compute: { vms: Pick<Compute["vms"], "get"> };
  commands: readonly Command[];
  config: { readonly policy: Policy };
  factsAbout: FactsAbout;
  projectName(id: string): Promise<string | undefined>;
  log: Log;
  /** What the card of an ended request says about attesting its VM again. */
  attestationNote?: (
    request: StoredRequest,
    command: ChangeCommand,
  ) => Promise<AfterNote | undefined>;
  /** What helped before, if a feature knows it. */
  remedies(): RemedyPart | undefined;
  editMs?: number;
}): Source {
  const { alerts } = options;
  let reading = 0;

  const prepareAlert: Source["prepareMessages"] = async (id, fields) => {
    const overview = parseBoard(id, fields);
    const alert = parseAlert(id, fields);
    const stored = overview ?? alert;
    if (!stored) return undefined;
    const { createdAt, revision } = stored;
    if (alert)
      await options
        .remedies()
        ?.learned(alert.record.requests, newsAt(alert), (vmId) =>
          firingOn(vmId, alert).map((firing) => ({ ...firing, state: "firing" })),
        );
    const overviewId = alert && boardOf(alert.delivered);
    if (overviewId !== undefined) {
      const hasEnded = alert?.state === "ended";
      const isShown = await alerts.overviews.touch(overviewId, hasEnded);
      if (isShown || hasEnded) return { createdAt, revision, messages: [] };
      await alerts.overviews.leave(id, overviewId, alerts.outbox);
      return prepareAlert(id, await alerts.outbox.get(id));
    }
    const as = { now: await alerts.now(), frozen: await options.store.freezeState() };
    if (alert && (await isToMove(alert, as.now)))
      return prepareAlert(id, await alerts.outbox.get(id));
    const owed = overview
      ? await messagesOfOverview(overview, fields, as)
      : alert && (await messagesOfGroup(alert, as));
    return { createdAt, revision, messages: [], ...owed };
  };

  async function messagesOfGroup(alert: StoredAlert, as: Now) {
    const { record, createdAt, delivered, state, revision } = alert;
    const { events } = record;
    const { now, frozen } = as;
    const { card: standsAt, marks } = delivered;
    // There is nothing to tell: the end came first, or Slack has refused the card.
    if (events.length === 0 || (isSaid(marks["card"]) && !standsAt)) return {};
    const isAway = state === "firing" && standsAt && standsAt.channelId !== ownChannelOf(alert);
    const channelId = placeOf(alert, now);
    if (channelId === undefined) return { waitMs: tryAgainMs };
    // A new request on the card is news, so it changes the look.
    const look = `${state}${record.silence ?? ""}${frozen ? "-frozen" : ""}-${record.requests.length}`;
    const { waitMs, shows } = pacedBy(alert, `${revision}`, look, now);
    const view = (reads = 0) => viewOf(alert, channelId, as, reads);
    const thread = { channelId, threadTs: standsAt?.ts };
    const keys = events.map((_event, n) => `event:${record.told + n}`);
    const called = [...calledBy(alert)];
    const uncalled = called
      .map(([who, rank]) => ({ who, rank, key: callFor(who, record.firings) }))
      .filter((call) => !isSaid(marks[call.key]))
      .map((call) => ({ ...call, urgentAt: record.urgentAt }));
    const { calling, isWaiting } = await claimed(alert.id, uncalled, channelId, [alert.id]);
    const calls = callsBy(alert.id, calling);
    // Only the first post notifies people. A card that is posted again elsewhere mentions nobody.
    const isOnCard = ([who]: [string, number]) => marks[callFor(who, 1)] === standsAt?.ts;
    const isPosted = isSaid(marks["card"]);
    const onCard = isPosted ? called.filter(isOnCard).map(([who]) => who) : calls.whom;
    const from = keys.findIndex((key) => !isSaid(marks[key]));
    const [key, ...also] = from < 0 ? [] : keys.slice(from);
    const isCallingAgain =
      isPosted && key && isRestart(events.slice(from)) && calls.whom.length > 0;
    // One message tells all waiting events, so that the thread of a flapping group doesn't lag
    // behind.
    const untold: Owed[] = key
      ? [
          {
            key,
            mark: marks[key],
            place: thread,
            render: async () =>
              renderEvents(events.slice(from), await view(), isCallingAgain ? calls.whom : []),
            covers: [...also, ...(isCallingAgain ? calls.keys : [])],
            ...(isCallingAgain
              ? { turn: "call", urgency: "result", onSaid: calls.onSaid }
              : { turn: "event", urgency: "rest" }),
          },
        ]
      : [];
    const card: Owed = {
      key: "card",
      mark: marks["card"],
      place: { channelId },
      render: async () => renderAlert(await view(mostWithControls), onCard),
      shows,
      urgency: "rest",
      covers: [...keys, ...calls.keys],
      onSaid: calls.onSaid,
      onClosed: whenClosed(alert.id, channelId),
      join:
        now - createdAt < deadlineMs(ownCardMs)
          ? undefined
          : () => alerts.overviews.join(alert.id, { channelId }),
    };
    const { formerCard, formerShown } = alert.delivered;
    const former: Owed[] = formerCard
      ? [
          {
            key: "former",
            mark: formerCard.ts,
            place: formerCard,
            render: async () => renderMoved(await view(), channelId),
            shows: {
              field: "former-shown",
              before: formerShown,
              now: "moved",
              standsAt: formerCard,
              isLast: true,
            },
          },
        ]
      : [];
    return {
      messages: [
        card,
        ...(isCallingAgain ? [] : callsOwed(calls, marks, thread, async () => [await view()])),
        ...untold,
        ...former,
      ],
      waitMs: soonest(waitMs, isAway && homeAgainMs, isWaiting && lookAgainMs),
    };
  }

  /** The people and groups whom the group's source calls for what fires now, each with the rank. */
  function calledBy({ record: { source, group } }: StoredAlert): ReadonlyMap<string, number> {
    const sources = sectionOf(options.config.policy, sourcesSection);
    const severities = detailsOf(group).flatMap((detail) =>
      isFiring(detail) ? detail.severity : [],
    );
    const rule = Object.hasOwn(sources, source) ? sources[source] : undefined;
    return rule ? calledFor(rule, severities) : new Map();
  }

  /**
   * Leaves out whom another group of the channel calls for this one, too, and notes that on the
   * subject. `isWaiting`: another group is about to call somebody.
   */
  async function claimed<T extends Uncalled>(
    id: string,
    uncalled: readonly T[],
    channelId: string,
    own: readonly string[],
  ) {
    const wishes = uncalled.map(async (call) => ({
      ...call,
      channelId,
      claim: await options.calls.claim({ ...call, channelId }, own),
    }));
    const all = await Promise.all(wishes);
    const made = all.filter(({ claim }) => claim === "made");
    const marks = Object.fromEntries(made.map(({ key }) => [`said:${key}`, "together"]));
    if (made.length > 0) await alerts.outbox.remember(id, marks);
    const calling = all.filter(({ claim }) => claim === "mine");
    return { calling, isWaiting: all.some(({ claim }) => claim === "waiting") };
  }

  /** Whom a message calls, the keys of these calls, and what notes that it was posted. */
  function callsBy(id: string, calling: readonly (Uncalled & { channelId: string })[]) {
    const note = async () => {
      const now = await alerts.now();
      await Promise.all(calling.map((call) => options.calls.note(call, id, now)));
    };
    return {
      whom: [...new Set(calling.map(({ who }) => who))],
      keys: [...new Set(calling.map(({ key }) => key))],
      // Without the note, the claim runs out, and another group calls once more.
      onSaid: () => void note().catch(() => undefined),
    };
  }

  /**
   * The message that calls those whom no message has called yet: for an alert that got more severe
   * after its card was posted, and for an overview.
   */
  function callsOwed(
    { whom, keys, onSaid }: ReturnType<typeof callsBy>,
    marks: Readonly<Record<string, string>>,
    place: Owed["place"],
    views: () => Promise<readonly View[]>,
  ): Owed[] {
    const [first, ...others] = keys;
    if (first === undefined) return [];
    return [
      {
        key: first,
        mark: marks[first],
        place,
        render: async () => renderCall(whom, await views()),
        covers: others,
        onSaid,
        turn: "call",
        urgency: "result",
      },
    ];
  }

  /**
   * The group's own channel. gatehouse.yml may name one now that it didn't name when the group
   * began.
   */
  function ownChannelOf({ record }: StoredAlert): string | undefined {
    const { policy } = options.config;
    const { channel } = sectionOf(policy, sourcesSection)[record.source] ?? {};
    return record.channelId || channel || policy.alerts?.channel;
  }

  /** The channel in which the card stands or can stand now (`openPlace`). */
  function placeOf(alert: StoredAlert, now: number): string | undefined {
    const { delivered, closed } = alert;
    const own = ownChannelOf(alert);
    const isMoving = delivered.card !== undefined && !isSaid(delivered.marks["card"]);
    if (isMoving && own) return own;
    return delivered.card?.channelId ?? openPlace(own, options.config.policy, closed, now);
  }

  /**
   * Decides whether a card that stands in another channel is posted again in its own one. While the
   * group fires, that is tried from time to time until the channel takes it. Resolves with true
   * when the mark of the card was changed.
   */
  async function isToMove(alert: StoredAlert, now: number): Promise<boolean> {
    const { id, delivered, closed, state } = alert;
    const { card, marks } = delivered;
    const own = ownChannelOf(alert);
    if (!card || own === undefined || card.channelId === own) return false;
    const { card: mark = "" } = marks;
    const isDue = state === "firing" && now - (closed[own] ?? -Infinity) >= homeAgainMs;
    if (isDue && isSaid(mark)) return alerts.outbox.mark(id, "said:card", mark, anewMark);
    return !isDue && mark === anewMark && alerts.outbox.mark(id, "said:card", mark, card.ts);
  }

  /**
   * Notes that the channel is closed. The message is read again at once to find another channel.
   */
  const whenClosed =
    (id: string, channelId: string) =>
    async (error: string): Promise<Relocation> => {
      options.log.warn("alert.channel-closed", { alert: id, channel: channelId, error });
      await alerts.close(id, channelId);
      return "moved";
    };

  async function messagesOfOverview(overview: Board, fields: Fields, as: Now) {
    const { now, frozen } = as;
    const { delivered, memberIds, place } = overview;
    const { policy } = options.config;
    const channelId =
      delivered.card?.channelId ?? openPlace(place.channelId, policy, closedIn(fields), now);
    if (channelId === undefined) return { messages: [], waitMs: tryAgainMs };
    const members = await alerts.getMany(memberIds);
    const firing = members.filter(({ state }) => state === "firing");
    const ended = members.length - firing.length;
    const facts = [frozen?.at, ...members.map(({ id, revision }) => [id, revision])];
    const version = hash("sha256", JSON.stringify(facts)).slice(0, 16);
    const { waitMs, shows } = pacedBy(overview, version, "overview", now);
    const render = async () => {
      const rows = groupsByVm(firing).slice(0, mostListed);
      const views = rows.map(async (groups) => ({
        groups,
        view: await viewOf(groups[0] as StoredAlert, channelId, as, 1, groups),
      }));
      return renderOverview(await Promise.all(views), { firing: firing.length, ended });
    };
    // The overview replaces many cards, so it is more urgent than one.
    const card = {
      key: "card",
      mark: delivered.marks["card"],
      urgency: "result" as const,
      onClosed: whenClosed(overview.id, channelId),
    };
    const { marks, card: standsAt } = delivered;
    const overviewCard = { ...card, place: { channelId }, render, shows };
    if (!standsAt) return { messages: [overviewCard], waitMs };
    const uncalled = firing.flatMap((alert) => uncalledOnOverview(alert, marks));
    const own = [overview.id, ...memberIds];
    const { calling, isWaiting } = await claimed(overview.id, uncalled, channelId, own);
    const callers = firing.filter(({ id }) => calling.some(({ alert }) => alert === id));
    const thread = { channelId, threadTs: standsAt.ts };
    const called = callsOwed(callsBy(overview.id, calling), marks, thread, async () =>
      Promise.all(callers.slice(0, mostListed).map((caller) => viewOf(caller, channelId, as, 0))),
    );
    return {
      messages: [overviewCard, ...called],
      waitMs: soonest(waitMs, isWaiting && lookAgainMs),
    };
  }

  /**
   * Whom the thread of an overview hasn't called for this group. One call is for all groups that
   * are as severe; a group that fires again is called for anew.
   */
  function uncalledOnOverview(
    alert: StoredAlert,
    marks: Readonly<Record<string, string>>,
  ): (Uncalled & { alert: string })[] {
    const { firings, urgentAt } = alert.record;
    const isFirst = firings === 1;
    return [...calledBy(alert)].flatMap(([who, rank]) => {
      const keyAt = (n: number) => `${callFor(who, 1)} rank ${n}`;
      const key = isFirst ? keyAt(rank) : `${callFor(who, firings)} ${alert.id}`;
      const keys = isFirst ? range(rank, highestRank).map(keyAt) : [key];
      const isCalled = keys.some((callKey) => isSaid(marks[callKey]));
      return isCalled ? [] : [{ alert: alert.id, who, rank, key, urgentAt }];
    });
  }

  /**
   * Paces edits of a card. No edit counts as the last one, because results of requests are more
   * urgent.
   */
  const pacedBy = (
    { delivered }: Pick<Board, "delivered">,
    version: string,
    look: string,
    now: number,
  ) => paced(delivered, { version, look, isLast: false }, now, options.editMs);

  /**
   * What a card shows. The first `reads` VMs are read from the compute service, because only these
   * can have controls. `together`: the groups that are shown as one, whose requests are shown too.
   */
  async function viewOf(
    alert: StoredAlert,
    channelId: string,
    { now, frozen }: Now,
    reads: number,
    together: readonly StoredAlert[] = [alert],
  ) {
    const { commands, store } = options;
    const { policy } = options.config;
    const { source, vms } = alert.record;
    const { offer = [] } = sectionOf(policy, sourcesSection)[source] ?? {};
    const all = new Set([...usual, ...offer]);
    const offered = [...all]
      .flatMap((operation) => commands.find((it) => dottedName(it) === operation) ?? [])
      .filter((command) => isRunIn({ policy, command, channelId }));
    const scope = scopeOfChannel(policy, channelId);
    const seen = options.inventory.seenIn(async () => scope);
    const known = vms.map(async ({ label, id }, n): Promise<(readonly [string, Vm])[]> => {
      const match = await seen.findVm(id, { onlyKnown: true }).catch(() => undefined);
      if (!match || !("record" in match) || match.record.id !== id) return [];
      const status = n < reads ? await statusNow(id) : undefined;
      const target = { ...targetOf(match.record), ...(status && { status }) };
      return [[label, { n, target, ...(status && { readAt: now }) }]];
    });
    const placed = (await Promise.all(known)).flat();
    const read = placed.flatMap(([, { n, target }]) => (n < reads ? [target] : []));
    const factsOn = await factsByVm(read, readerWithin(scope, options));
    const remedies = options.remedies();
    const withFacts = placed.map(async ([label, vm]): Promise<readonly [string, Vm]> => {
      if (vm.n >= reads) return [label, vm];
      const facts = factsOn(vm.target.id);
      const advice = await readAdvice(vm.target, alert, { remedies, scope });
      return [label, { ...vm, facts, refused: refusedBy(facts, commands), advice }];
    });
    const shown = new Map(await Promise.all(withFacts));
    const requests = together.flatMap(({ record }) => record.requests.slice(-mostPresses));
    const made = await store.getMany(requests);
    const shownIds = new Set([...shown.values()].map(({ target }) => target.id));
    const pressed = made.map(async (request) => {
      const { command: called, origin, target } = request.record;
      const command = commands.find(({ name }) => name === called);
      if (!command || !isChange(command)) return [];
      // A request that was made elsewhere is shown only to readers who see its VM.
      if (origin.kind !== "alert" && !shownIds.has(target.id)) return [];
      const note = request.final ? await options.attestationNote?.(request, command) : undefined;
      return [{ request, command, note }];
    });
    const presses = (await Promise.all(pressed)).flat();
    const instead = insteadInError(commands);
    const { remedyMs: helpsWithinMs } = policy.timing;
    const facts = { offered, instead, presses, frozen, helpsWithinMs, policy };
    return { alert, vms: shown, ...facts } satisfies View;
  }

  /** Reads the facts of these VMs at once: those about each, and those about everything. */
  async function factsByVm(
    vms: readonly Target[],
    reader: FactReader,
  ): Promise<(vmId: string) => readonly Fact[]> {
    const each = new Map(vms.map((vm) => [vm.id, vm]));
    const facts =
      each.size === 0
        ? []
        : await options.factsAbout([...each.values()], { reader, tellsRecent: true });
    return (vmId) => facts.filter(({ about }) => about === undefined || about.id === vmId);
  }

  /**
   * The VM's present status; undefined when the compute service doesn't answer in time or too many
   * reads run.
   */
  async function statusNow(id: string): Promise<string | undefined> {
    if (reading >= readsAtOnce) return undefined;
    reading += 1;
    const signal = deadlineSignal(readWithinMs);
    const vm = await options.compute.vms.get(id, { signal }).catch(() => undefined);
    reading -= 1;
    return vm?.status;
  }

  return { outbox: alerts.outbox, owedSince: "createdAt", prepareMessages: prepareAlert };
}

/** Names of the changes that the compute service refused for the VM's ERROR, and would again. */
const refusedBy = (facts: readonly Fact[], commands: readonly Command[]): ReadonlySet<string> =>
  new Set(
    requestable(commands)
      .filter((command) =>
        facts.some((fact) => fact.kind === "status" && fact.blocks?.(command) === "fails"),
      )
      .map(({ name }) => name),
  );

const range = (from: number, to: number) =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => from + n);

/** The shortest of these waits (ms); 0 and false are none. */
function soonest(...waits: readonly (number | false | undefined)[]): number {
  const all = waits.flatMap((wait) => wait || []);
  return all.length > 0 ? Math.min(...all) : 0;
}

/** Merges held deliveries when their time has come. This source owes no messages itself. */
export function heldAlerts({ alerts }: { alerts: Alerts }): Source {
  const prepareAlert: Source["prepareMessages"] = async (id) => {
    return { createdAt: 0, messages: [], ...(await alerts.settle(id)) };
  };
  return { outbox: alerts.held, prepareMessages: prepareAlert };
}
