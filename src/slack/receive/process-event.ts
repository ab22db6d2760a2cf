import type { App, ReceiverEvent } from "@slack/bolt";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { spanned } from "../../log/traces.ts";
import { textAt } from "../json.ts";
import { RefusedDelivery } from "./refuse-foreign.ts";
import { clockHint } from "./slack-signature.ts";

export type ProcessEvent = (event: ReceiverEvent) => Promise<void>;

interface ProcessEventOptions {
  app: Pick<App, "processEvent">;
  log: Log;
  /** Gets the time from receiving a delivery to sending its acknowledgment. */
  onAck?: ((kind: string, ms: number) => void) | undefined;
  onRefused?: ((reason: RefusedDelivery["reason"] | "unhandled") => void) | undefined;
}

/**
 * Both receivers call this in place of `App.processEvent`, which acknowledges an event before its
 * listeners have stored it (@slack/bolt 5.1.0). Here each delivery is acknowledged once, when its
 * listener has finished, and also when none listens. Throws only RefusedDelivery.
 */
export function createProcessEvent({ app, log, onAck, onRefused }: ProcessEventOptions) {
  let inHand = 0;

  const processEvent: ProcessEvent = async (event) => {
    const began = performance.now();
    const kind = kindOf(event.body);
    let response: unknown;
    let isTaken = false;
    inHand += 1;
    try {
      const ack = async (answer: unknown) => {
        isTaken = true;
        response = answer;
      };
      await spanned({ name: `slack ${kind}`, kind: "server" }, () =>
        app.processEvent({ ...event, ack }),
      );
      if (!isTaken) {
        onRefused?.("unhandled");
        log.warn("slack.unhandled", { type: textAt(event.body, "type").slice(0, 50) });
      }
    } catch (error) {
      if (error instanceof RefusedDelivery) {
        onRefused?.(error.reason);
        const hint = error.reason === "timestamp" ? clockHint : undefined;
        log.warn("slack.refused", { reason: error.reason, kind, hint });
        throw error;
      }
      onRefused?.("unhandled");
      log.error("slack.delivery-failed", { kind, error });
    } finally {
      inHand -= 1;
    }
    // When this fails, the person sees Slack's own error. The interaction is stored and still
    // handled.
    await event
      .ack(response)
      .catch((error: unknown) => log.warn("slack.ack-failed", { kind, error: messageOf(error) }));
    onAck?.(kind, performance.now() - began);
  };

  return {
    processEvent,
    /** How many deliveries have no answer yet. */
    inHand: () => inHand,
  };
}

/** The name of a delivery's kind in metrics. */
function kindOf(body: unknown): string {
  if (textAt(body, "command") !== "") return "command";
  return kinds.get(textAt(body, "type")) ?? "other";
}

const kinds = new Map([
  ["event_callback", "event"],
  ["block_actions", "button"],
  ["view_submission", "submission"],
  ["view_closed", "closed"],
  ["block_suggestion", "options"],
  ["shortcut", "shortcut"],
  ["message_action", "shortcut"],
]);
