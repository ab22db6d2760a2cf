import { type Owed, isSaid } from "../../core/deliver/post-once.ts";
import { deadlineMs } from "../../deadline.ts";
import { tryAgainMs } from "../../core/deliver/open-place.ts";
import type { createAlertCalls } from "./alert-calls.ts";
import { lookAgainMs, pacedEdit, soonest } from "./alert-pace.ts";
import { type createAlertPlaces, homeAgainMs } from "./alert-places.ts";
import type { Now, createAlertView } from "./alert-view.ts";
import type { Alerts, StoredAlert } from "./alerts.ts";
import {
  type View,
  isRestart,
  mostWithControls,
  renderAlert,
  renderEvents,
  renderMoved,
} from "./render-alert.ts";

/** How long a card waits for its turn in the channel before its group joins an overview (ms). */
const ownCardMs = 3_000;

/** The parts that the messages of alerts are made of. */
export interface AlertMessageParts {
  alerts: Alerts;
  calls: ReturnType<typeof createAlertCalls>;
  places: ReturnType<typeof createAlertPlaces>;
  viewOf: ReturnType<typeof createAlertView>;
  editMs?: number;
}

/**
 * Creates the function that returns what a group of alerts owes: its card, the message that calls
 * people, the notes in its thread, and what stands where its card was before.
 */
export function createGroupMessages({ alerts, calls, places, viewOf, editMs }: AlertMessageParts) {
  return async function messagesOfGroup(alert: StoredAlert, present: Now) {
    const { record, createdAt, delivered, state, revision } = alert;
    const { now, frozen } = present;
    const { card: standsAt, marks } = delivered;
    const isPosted = isSaid(marks["card"]);
    // There is nothing to tell: the end came first, or Slack has refused the card.
    if (record.events.length === 0 || (isPosted && !standsAt)) return {};
    const channelId = places.placeOf(alert, now);
    if (channelId === undefined) return { waitMs: tryAgainMs };
    const home = places.ownChannelOf(alert);
    const isAway = state === "firing" && standsAt && standsAt.channelId !== home;
    // A new request on the card is news, so it changes the look.
    const look = `${state}${record.silence ?? ""}${frozen ? "-frozen" : ""}-${record.requests.length}`;
    const { waitMs, shows } = pacedEdit(alert, { version: `${revision}`, look }, now, editMs);
    const view = (reads = 0) => viewOf(alert, { channelId, present, reads });
    const uncalled = calls.uncalledOnCard(alert);
    const { calling, isWaiting } = await calls.claimed(alert.id, uncalled, channelId, [alert.id]);
    const toCall = calls.callsBy(alert.id, calling);
    const thread = { channelId, threadTs: standsAt?.ts };
    const untold = eventsOwed(alert, { thread, view, toCall });
    const onCard = isPosted ? calls.calledOnCard(alert) : toCall.whom;
    const card: Owed = {
      key: "card",
      mark: marks["card"],
      place: { channelId },
      render: async () => renderAlert(await view(mostWithControls), onCard),
      shows,
      urgency: "rest",
      covers: [...eventKeys(alert), ...toCall.keys],
      onSaid: toCall.onSaid,
      onClosed: places.whenClosed(alert.id, channelId),
      join:
        now - createdAt < deadlineMs(ownCardMs)
          ? undefined
          : () => alerts.overviews.join(alert.id, { channelId }),
    };
    const call = untold.isCall
      ? []
      : calls.callsOwed(toCall, marks, thread, async () => [await view()]);
    return {
      messages: [card, ...call, ...untold.messages, ...formerOwed(alert, view, channelId)],
      waitMs: soonest(waitMs, isAway && homeAgainMs, isWaiting && lookAgainMs),
    };
  };
}

const eventKeys = ({ record }: StoredAlert): readonly string[] =>
  record.events.map((_event, n) => `event:${record.told + n}`);

/**
 * Returns the message that tells all waiting events, so that the thread of a flapping group doesn't
 * lag behind. `isCall`: it also calls people, because the group fires again.
 */
function eventsOwed(
  alert: StoredAlert,
  {
    thread,
    view,
    toCall,
  }: {
    thread: Owed["place"];
    view: () => Promise<View>;
    toCall: ReturnType<ReturnType<typeof createAlertCalls>["callsBy"]>;
  },
): { messages: readonly Owed[]; isCall: boolean } {
  const { marks } = alert.delivered;
  const keys = eventKeys(alert);
  const from = keys.findIndex((key) => !isSaid(marks[key]));
  const [key, ...also] = from < 0 ? [] : keys.slice(from);
  if (key === undefined) return { messages: [], isCall: false };
  const events = alert.record.events.slice(from);
  const isCall = isSaid(marks["card"]) && isRestart(events) && toCall.whom.length > 0;
  const message: Owed = {
    key,
    mark: marks[key],
    place: thread,
    render: async () => renderEvents(events, await view(), isCall ? toCall.whom : []),
    covers: [...also, ...(isCall ? toCall.keys : [])],
    ...(isCall
      ? { turn: "call", urgency: "result", onSaid: toCall.onSaid }
      : { turn: "event", urgency: "rest" }),
  };
  return { messages: [message], isCall };
}

/** Returns the edit of a card that was posted again in another channel. */
function formerOwed(
  { delivered: { formerCard, formerShown } }: StoredAlert,
  view: () => Promise<View>,
  channelId: string,
): readonly Owed[] {
  if (!formerCard) return [];
  return [
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
  ];
}
