import type { Source } from "../../core/deliver/deliver.ts";
import type { Log } from "../../log/log.ts";
import { boardOf, parseBoard } from "../../redis/board.ts";
import { createAlertCalls } from "./alert-calls.ts";
import { createAlertPlaces } from "./alert-places.ts";
import { type AlertViewOptions, createAlertView } from "./alert-view.ts";
import { type Alerts, parseAlert } from "./alerts.ts";
import type { ChannelCalls } from "./channel-calls.ts";
import { createGroupMessages } from "./group-messages.ts";
import { createOverviewMessages } from "./overview-messages.ts";
import { firingOn } from "./render-alert.ts";
import { newsAt } from "./tell-features.ts";

export type AlertSourceOptions = AlertViewOptions & {
  alerts: Alerts;
  calls: ChannelCalls;
  log: Log;
  editMs?: number;
};

/**
 * Source of the messages of alerts: a card that is edited, and notes in its thread. If the channel
 * takes no card now, the group joins an overview, which is edited too.
 */
export function alertSource(options: AlertSourceOptions): Source {
  const { alerts } = options;
  const places = createAlertPlaces(options);
  const parts = {
    ...options,
    places,
    calls: createAlertCalls(options),
    viewOf: createAlertView(options),
  };
  const messagesOfGroup = createGroupMessages(parts);
  const messagesOfOverview = createOverviewMessages(parts);

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
    const present = { now: await alerts.now(), frozen: await options.store.freezeState() };
    if (alert && (await places.isToMove(alert, present.now)))
      return prepareAlert(id, await alerts.outbox.get(id));
    const owed = overview
      ? await messagesOfOverview(overview, fields, present)
      : alert && (await messagesOfGroup(alert, present));
    return { createdAt, revision, messages: [], ...owed };
  };

  return { outbox: alerts.outbox, owedSince: "createdAt", prepareMessages: prepareAlert };
}

/** Merges held deliveries when their time has come. This source owes no messages itself. */
export function heldAlerts({ alerts }: { alerts: Alerts }): Source {
  const prepareAlert: Source["prepareMessages"] = async (id) => {
    return { createdAt: 0, messages: [], ...(await alerts.settle(id)) };
  };
  return { outbox: alerts.held, prepareMessages: prepareAlert };
}
