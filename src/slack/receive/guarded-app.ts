import { setTimeout as sleep } from "node:timers/promises";
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

/**
 * From an ack to what comes after it (ms). Handling one takes milliseconds: begun at once, it keeps the processor from whoever
 * carries the ack away, and makes the acks of deliveries that come together wait.
 */
const ackFirstMs = 3;

/** A delivery for another app or workspace. Receivers refuse it without an answer. */
export class ForeignDelivery extends Error {
  override readonly name = "ForeignDelivery";
}

/** What the ack of a delivery says, and how it goes on afterwards, if it does. */
export interface Prepared {
  said?: object;
  goOn?: () => unknown;
}

interface GuardOptions {
  identity: BotIdentity;
  log: Log;
  /** Runs before the ack. */
  prepare: (kind: DeliveryKind, body: unknown) => Promise<Prepared>;
  onAck?: ((kind: DeliveryKind, ms: number) => void) | undefined;
  onRefused?: ((reason: "app" | "team") => void) | undefined;
}

/**
 * Bolt App that rejects foreign deliveries, acks all others exactly once (Bolt ignores what it has no listener for), and
 * measures how long the ack took. Bolt decides after the ack whether a delivery goes on: nobody waits for it then.
 */
export class GuardedApp extends App {
  readonly #guard: GuardOptions;
  #inHand = 0;
  #rest: Promise<void> | undefined;

  constructor(app: AppOptions, guard: GuardOptions) {
    super(app);
    this.#guard = guard;
    this.use(async ({ context }) => void (await (context as Prepared).goOn?.()));
  }

  /** Deliveries that aren't acked, or don't go on yet. */
  get inHand(): number {
    return this.#inHand;
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
    this.#inHand += 1;
    try {
      const { said, goOn } = await this.#prepare(kind, event.body);
      // When it fails the person sees Slack's own error; the interaction is stored and is still handled
      await event
        .ack(said)
        .catch((error: unknown) => log.warn("slack.ack-failed", { kind, error: messageOf(error) }));
      this.#guard.onAck?.(kind, performance.now() - began);
      if (goOn === undefined) return;
      await this.#acksFirst();
      const ack: ReceiverEvent["ack"] = () => Promise.resolve();
      await super.processEvent({ ...event, ack, customProperties: { goOn } });
    } catch (error) {
      log.error("slack.delivery-failed", { kind, error });
    } finally {
      this.#inHand -= 1;
    }
  }

  /** Deliveries that are acked meanwhile go on together. */
  #acksFirst(): Promise<void> {
    this.#rest ??= sleep(ackFirstMs).then(() => (this.#rest = undefined));
    return this.#rest;
  }

  async #prepare(kind: DeliveryKind, body: unknown): Promise<Prepared> {
    const { log, prepare } = this.#guard;
    if (kind === "other") log.warn("slack.unhandled", { type: textAt(body, "type").slice(0, 50) });
    try {
      return await prepare(kind, body);
    } catch (error) {
      log.error("slack.delivery-failed", { kind, error });
      return {};
    }
  }
}

export function deliveryKind(body: unknown): DeliveryKind {
  if (textAt(body, "command") !== "") return "command";
  return kinds.get(textAt(body, "type")) ?? "other";
}
