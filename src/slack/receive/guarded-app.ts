import { App, type AppOptions, type ReceiverEvent } from "@slack/bolt";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import { type BotIdentity, foreignness } from "../people/identity.ts";
import { textAt } from "../web.ts";

/** The kind of a delivery, for its listener and for metrics. */
export type DeliveryKind =
  | "command"
  | "event"
  | "button"
  | "submission"
  | "closed"
  | "options"
  | "shortcut"
  | "other";

const kinds = new Map<string, DeliveryKind>([
  ["event_callback", "event"],
  ["block_actions", "button"],
  ["interactive_message", "button"],
  ["view_submission", "submission"],
  ["view_closed", "closed"],
  ["block_suggestion", "options"],
  ["shortcut", "shortcut"],
  ["message_action", "shortcut"],
]);

/** A delivery for another app or workspace. Receivers refuse it without an answer. */
export class ForeignDelivery extends Error {
  override readonly name = "ForeignDelivery";
}

interface GuardOptions {
  identity: BotIdentity;
  log: Log;
  /** Runs before an event is acked: Bolt acks events before any listener sees them. */
  beforeEventAck: (body: unknown) => Promise<void>;
  onAck?: ((kind: DeliveryKind, ms: number) => void) | undefined;
  onRefused?: ((reason: "app" | "team") => void) | undefined;
}

/**
 * Bolt App that rejects foreign deliveries, acks everything exactly once (Bolt ignores what it has no listener for), and
 * measures how long the ack took.
 */
export class GuardedApp extends App {
  readonly #guard: GuardOptions;
  #unacked = 0;

  constructor(app: AppOptions, guard: GuardOptions) {
    super(app);
    this.#guard = guard;
  }

  get unacked(): number {
    return this.#unacked;
  }

  /** Throws only ForeignDelivery: any other error would be an unhandled rejection in a receiver. */
  override async processEvent(event: ReceiverEvent): Promise<void> {
    const { log, identity } = this.#guard;
    const began = performance.now();
    const kind = deliveryKind(event.body);
    const foreign = foreignness(event.body, identity);
    if (foreign !== undefined) {
      this.#guard.onRefused?.(foreign);
      log.warn("slack.refused", { reason: foreign, kind });
      throw new ForeignDelivery(foreign);
    }
    let acked = false;
    const ack: ReceiverEvent["ack"] = async (response) => {
      if (acked) return;
      acked = true;
      // When it fails the person sees Slack's own error; the interaction is stored and is still handled
      await event
        .ack(response)
        .catch((error: unknown) => log.warn("slack.ack-failed", { kind, error: messageOf(error) }));
      this.#guard.onAck?.(kind, performance.now() - began);
    };
    const prepared: ReceiverEvent["ack"] = async (response) => {
      await this.#guard.beforeEventAck(event.body);
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
  return kinds.get(textAt(body, "type")) ?? "other";
}
