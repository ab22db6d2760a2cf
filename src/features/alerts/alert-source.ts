import { hash } from "node:crypto";
import type { AfterNote } from "../../attestation/render-attestation.ts";
import { type Compute, statusFacts } from "../../fleet/compute/compute.ts";
import type { Policy } from "../../config/policy-file.ts";
import { sectionOf } from "../../config/policy-section.ts";
import type { Inventory } from "../../fleet/inventory/inventory.ts";
import type { Log } from "../../log/log.ts";
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
} from "../../registry/define.ts";
import type { Journal } from "../../core/request/journal.ts";
import { recentRequests } from "../../core/request/lists.ts";
import { insteadInError, refusedInError } from "../../core/cards/render-result.ts";
import { targetOf } from "../../core/submit/resolve-targets.ts";
import type { Source } from "../../core/deliver/deliver.ts";
import { type Owed, anewMark, isSaid, paced } from "../../core/deliver/post-once.ts";
import { type Alerts, type StoredAlert, parseAlert } from "./alerts.ts";
import { closedIn, openPlace, tryAgainMs } from "../../core/deliver/open-place.ts";
import {
  type View,
  mostWithControls,
  renderAlert,
  renderEvents,
  renderMoved,
  renderOverview,
} from "./render-alert.ts";
import { sourcesSection } from "./sources.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";

/** Reads of VMs at a time, in a storm too: changes have more use for the compute service. */
const readsAtOnce = 10;
const readWithinMs = 1_000;
const mostListed = 20;
/** Before what a source offers. */
const usual = ["vm.show", "vm.metrics", "vm.restart", "vm.start"];
const mostPresses = 3;
/** A card waits so long for its turn in the channel before its group is told with others (ms). */
const ownCardMs = 3_000;

/** How often the own channel of a group is tried whose card stands in another one meanwhile (ms). */
const homeAgainMs = 30_000;

/** Redis time (ms). */
type Now = Pick<View, "frozen"> & { now: number };

/**
 * The messages of alerts: a card that is edited, and in its thread what joins it and its end. Where the channel takes no card now,
 * the group joins an overview, which is edited as well.
 */
export function alertSource(options: {
  alerts: Alerts;
  store: Pick<Journal, "freezeState" | "getMany" | "recentIds">;
  inventory: Pick<Inventory, "seenIn">;
  compute: { vms: Pick<Compute["vms"], "get"> };
  commands: readonly Command[];
  config: { readonly policy: Policy };
  log: Log;
  /** Whether the VM of a request that ended is attested again, as its own card says it. */
  attestationNote?: (
    request: StoredRequest,
    command: ChangeCommand,
  ) => Promise<AfterNote | undefined>;
  editMs?: number;
}): Source {
  const { alerts } = options;
  let reading = 0;

  const readAlert: Source["readSubject"] = async (id, fields) => {
    const overview = parseBoard(id, fields);
    const alert = parseAlert(id, fields);
    const stored = overview ?? alert;
    if (!stored) return undefined;
    const { createdAt, revision } = stored;
    const overviewId = alert && boardOf(alert.delivered);
    if (overviewId !== undefined) {
      const hasEnded = alert?.state === "ended";
      const isShown = await alerts.overviews.touch(overviewId, hasEnded);
      if (isShown || hasEnded) return { createdAt, revision, messages: [] };
      await alerts.overviews.leave(id, overviewId, alerts.outbox);
      return readAlert(id, await alerts.outbox.get(id));
    }
    const as = { now: await alerts.now(), frozen: await options.store.freezeState() };
    if (alert && (await isToMove(alert, as.now))) return readAlert(id, await alerts.outbox.get(id));
    const owed = overview
      ? await messagesOfOverview(overview, fields, as)
      : alert && messagesOfGroup(alert, as);
    return { createdAt, revision, messages: [], ...owed };
  };

  function messagesOfGroup(alert: StoredAlert, as: Now) {
    const { record, createdAt, delivered, state, revision } = alert;
    const { events } = record;
    const { now, frozen } = as;
    const { card: standsAt, said } = delivered;
    // Nothing to tell: its end came first, or Slack has refused it
    if (events.length === 0 || (isSaid(said["card"]) && !standsAt)) return {};
    const isAway = state === "firing" && standsAt && standsAt.channelId !== ownChannelOf(alert);
    const channelId = placeOf(alert, now);
    if (channelId === undefined) return { waitMs: tryAgainMs };
    // That somebody is on it is news
    const look = `${state}${record.silence ?? ""}${frozen ? "-frozen" : ""}-${record.requests.length}`;
    const { waitMs, shows } = pacedBy(alert, `${revision}`, look, now);
    const view = (reads = 0) => viewOf(alert, channelId, as, reads);
    const thread = { channelId, threadTs: standsAt?.ts };
    const keys = events.map((_event, n) => `event:${record.told + n}`);
    const from = keys.findIndex((key) => !isSaid(said[key]));
    const [key, ...also] = from < 0 ? [] : keys.slice(from);
    // One message tells all events that wait, so the thread of a flapping group doesn't lag behind
    const untold: Owed[] = key
      ? [
          {
            key,
            mark: said[key],
            place: thread,
            render: async () => renderEvents(events.slice(from), await view()),
            covers: also,
            turn: "event",
            urgency: "rest",
          },
        ]
      : [];
    const card: Owed = {
      key: "card",
      mark: said["card"],
      place: { channelId },
      render: async () => renderAlert(await view(mostWithControls)),
      shows,
      urgency: "rest",
      covers: keys,
      closed: whenClosed(alert.id, channelId),
      join:
        now - createdAt < ownCardMs
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
      messages: [card, ...untold, ...former],
      waitMs: isAway ? Math.min(waitMs || homeAgainMs, homeAgainMs) : waitMs,
    };
  }

  /** As gatehouse.yml may name one by now. */
  function ownChannelOf({ record }: StoredAlert): string | undefined {
    const { policy } = options.config;
    const { channel } = sectionOf(policy, sourcesSection)[record.source] ?? {};
    return record.channelId || channel || policy.alerts?.channel;
  }

  /** Where its card stands, or can stand now (`openPlace`). */
  function placeOf(alert: StoredAlert, now: number): string | undefined {
    const { delivered, closed } = alert;
    const own = ownChannelOf(alert);
    const isMoving = delivered.card !== undefined && !isSaid(delivered.said["card"]);
    if (isMoving && own) return own;
    return delivered.card?.channelId ?? openPlace(own, options.config.policy, closed, now);
  }

  /**
   * A card that stands in another channel is posted anew in its own from time to time while its group fires, until that takes it.
   * Resolves with true when the mark of the card says so now, or no longer.
   */
  async function isToMove(alert: StoredAlert, now: number): Promise<boolean> {
    const { id, delivered, closed, state } = alert;
    const { card, said } = delivered;
    const own = ownChannelOf(alert);
    if (!card || own === undefined || card.channelId === own) return false;
    const { card: mark = "" } = said;
    const isDue = state === "firing" && now - (closed[own] ?? -Infinity) >= homeAgainMs;
    if (isDue && isSaid(mark)) return alerts.outbox.mark(id, "said:card", mark, anewMark);
    return !isDue && mark === anewMark && alerts.outbox.mark(id, "said:card", mark, card.ts);
  }

  /** Its message is read again, for the next place. */
  const whenClosed = (id: string, channelId: string) => async (error: string) => {
    options.log.warn("alert.channel-closed", { alert: id, channel: channelId, error });
    await alerts.close(id, channelId);
    return 0;
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
      const views = firing.slice(0, mostListed).map((alert) => viewOf(alert, channelId, as, 1));
      return renderOverview(await Promise.all(views), firing.length, ended);
    };
    // It stands for many cards
    const card = {
      key: "card",
      mark: delivered.said["card"],
      urgency: "result" as const,
      closed: whenClosed(overview.id, channelId),
    };
    return { messages: [{ ...card, place: { channelId }, render, shows }], waitMs };
  }

  /** Never the last: results of requests go first. */
  const pacedBy = (
    { delivered }: Pick<Board, "delivered">,
    version: string,
    look: string,
    now: number,
  ) => paced(delivered, { version, look, isLast: false }, now, options.editMs);

  /** So many of its VMs are read from the compute service: those that can have controls. */
  async function viewOf(
    alert: StoredAlert,
    channelId: string,
    { now, frozen }: Now,
    reads: number,
  ) {
    const { commands, store } = options;
    const { policy } = options.config;
    const { source, vms, requests } = alert.record;
    const { offer = [] } = sectionOf(policy, sourcesSection)[source] ?? {};
    const all = new Set([...usual, ...offer]);
    const offered = [...all]
      .flatMap((one) => commands.find((it) => dottedName(it) === one) ?? [])
      .filter((command) => isRunIn({ policy, command, channelId }));
    const seen = options.inventory.seenIn(async () => scopeOfChannel(policy, channelId));
    const known = vms.map(async ({ label, id }, n) => {
      const found = await seen.findVm(id, { onlyKnown: true }).catch(() => undefined);
      if (!found || !("found" in found) || found.found.id !== id) return [];
      const status = n < reads ? await statusNow(id) : undefined;
      const target = { ...targetOf(found.found), ...(status && { status }) };
      const refused = await refusedOn(target);
      return [[label, { n, target, refused, ...(status && { readAt: now }) }] as const];
    });
    const shown = new Map((await Promise.all(known)).flat());
    const made = await store.getMany(requests.slice(-mostPresses));
    const pressed = made.map(async (request) => {
      const command = commands.find(({ name }) => name === request.record.command);
      if (!command || !isChange(command)) return [];
      const note = request.final ? await options.attestationNote?.(request, command) : undefined;
      return [{ request, command, note }];
    });
    const presses = (await Promise.all(pressed)).flat();
    const instead = insteadInError(commands);
    return { alert, vms: shown, offered, instead, presses, frozen, policy } satisfies View;
  }

  /** What the VM's own card leaves out in ERROR. Nothing where it can't be said. */
  async function refusedOn({ id, status }: Target): Promise<ReadonlySet<string>> {
    if (!statusFacts(status).isAlarming) return new Set();
    const asked = { targetId: id, most: 10 };
    const last = await recentRequests(asked, options.store).catch(() => []);
    return refusedInError({ vm: { status }, last });
  }

  /** Undefined where the compute service doesn't tell in time. */
  async function statusNow(id: string): Promise<string | undefined> {
    if (reading >= readsAtOnce) return undefined;
    reading += 1;
    const signal = AbortSignal.timeout(readWithinMs);
    const vm = await options.compute.vms.get(id, { signal }).catch(() => undefined);
    reading -= 1;
    return vm?.status;
  }

  return { outbox: alerts.outbox, owedSince: "createdAt", readSubject: readAlert };
}

/** What was told of a group and is held counts, once its time has come. It says nothing itself. */
export function heldAlerts({ alerts }: { alerts: Alerts }): Source {
  const readAlert: Source["readSubject"] = async (id) => {
    return { createdAt: 0, messages: [], ...(await alerts.settle(id)) };
  };
  return { outbox: alerts.held, readSubject: readAlert };
}
