import { App, type AppOptions, type ReceiverEvent } from "@slack/bolt";
import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { type BotIdentity, foreignness } from "./identity.ts";
import { textAt } from "./payload.ts";

/** What arrived, for figures: Slack's own words. */
export type DeliveryKind =
  | "command"
  | "event"
  | "button"
  | "submission"
  | "closed"
  | "options"
  | "shortcut"
  | "other";

/** A delivery for another app or another workspace. Receivers refuse it without an answer. */
export class ForeignDelivery extends Error {
  override readonly name = "ForeignDelivery";
}

export interface FrontOptions {
  identity: BotIdentity;
  log: Log;
  /** Runs before an event is acked: Bolt acks events before any listener sees them. */
  beforeEventAck: (body: unknown) => Promise<void>;
  onAck?: ((kind: DeliveryKind, ms: number) => void) | undefined;
  onRefused?: ((reason: "app" | "team") => void) | undefined;
}

/**
 * Bolt's App with a door in front: lets in only what is for us, sees to it that everything is acked exactly once (Bolt leaves
 * alone what it has no listener for, and in Socket Mode says nothing about it), and measures how long that took.
 */
export class FrontApp extends App {
  readonly #front: FrontOptions;
  #unacked = 0;

  constructor(app: AppOptions, front: FrontOptions) {
    super(app);
    this.#front = front;
  }

  /** Deliveries that have no ack yet. */
  get unacked(): number {
    return this.#unacked;
  }

  /** Throws ForeignDelivery, nothing else: an error in here would be an unhandled rejection in a receiver. */
  override async processEvent(event: ReceiverEvent): Promise<void> {
    const { log, identity } = this.#front;
    const began = performance.now();
    const kind = deliveryKind(event.body);
    const foreign = foreignness(event.body, identity);
    if (foreign !== undefined) {
      this.#front.onRefused?.(foreign);
      log.warn("slack.refused", { reason: foreign, kind });
      throw new ForeignDelivery(foreign);
    }
    let acked = false;
    const ack: ReceiverEvent["ack"] = async (response) => {
      if (acked) return;
      acked = true;
      // When it fails the person sees Slack's own error; what they asked for is written down and goes on.
      await event
        .ack(response)
        .catch((error: unknown) => log.warn("slack.ack-failed", { kind, error: messageOf(error) }));
      this.#front.onAck?.(kind, performance.now() - began);
    };
    const prepared: ReceiverEvent["ack"] = async (response) => {
      await this.#front.beforeEventAck(event.body);
      await ack(response);
    };
    this.#unacked += 1;
    try {
      await super.processEvent({ ...event, ack: kind === "event" ? prepared : ack });
    } catch (error) {
      log.error("slack.delivery-failed", { kind, error });
    } finally {
      if (!acked) {
        log.warn("slack.unhandled", { kind, type: textAt(event.body, "type").slice(0, 50) });
        await ack();
      }
      this.#unacked -= 1;
    }
  }
}

export function deliveryKind(body: unknown): DeliveryKind {
  if (textAt(body, "command") !== "") return "command";
  switch (textAt(body, "type")) {
    case "event_callback":
      return "event";
    case "block_actions":
    case "interactive_message":
      return "button";
    case "view_submission":
      return "submission";
    case "view_closed":
      return "closed";
    case "block_suggestion":
      return "options";
    case "shortcut":
    case "message_action":
      return "shortcut";
    default:
      return "other";
  }
}
