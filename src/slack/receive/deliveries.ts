import type { ReceiverEvent } from "@slack/bolt";
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

/** What the ack of a delivery says, and how it goes on afterwards, if it does. */
export interface Prepared {
  said?: object;
  goOn?: () => unknown;
}

/** Takes one delivery. Throws only ForeignDelivery: any other error would be an unhandled rejection in a receiver. */
export type TakeDelivery = (event: Pick<ReceiverEvent, "body" | "ack">) => Promise<void>;

/** Rejects foreign deliveries, acks all others exactly once, and measures how long the ack took. */
export function createDeliveries(options: {
  identity: BotIdentity;
  log: Log;
  /** Runs before the ack. */
  prepare: (kind: DeliveryKind, body: unknown) => Promise<Prepared>;
  onAck?: ((kind: DeliveryKind, ms: number) => void) | undefined;
  onRefused?: ((reason: "app" | "team") => void) | undefined;
}) {
  const { identity, log, prepare, onAck, onRefused } = options;
  let inHand = 0;

  const take: TakeDelivery = async ({ body, ack }) => {
    const began = performance.now();
    const kind = deliveryKind(body);
    const foreign = foreignness(body, identity);
    if (foreign !== undefined) {
      onRefused?.(foreign);
      log.warn("slack.refused", { reason: foreign, kind });
      throw new ForeignDelivery(foreign);
    }
    if (kind === "other") log.warn("slack.unhandled", { type: textAt(body, "type").slice(0, 50) });
    inHand += 1;
    try {
      const { said, goOn } = await prepare(kind, body).catch((error: unknown): Prepared => {
        log.error("slack.delivery-failed", { kind, error });
        return {};
      });
      // When it fails the person sees Slack's own error; the interaction is stored and is still handled
      await ack(said).catch((error: unknown) =>
        log.warn("slack.ack-failed", { kind, error: messageOf(error) }),
      );
      onAck?.(kind, performance.now() - began);
      await goOn?.();
    } catch (error) {
      log.error("slack.delivery-failed", { kind, error });
    } finally {
      inHand -= 1;
    }
  };

  /** `inHand`: deliveries that aren't acked, or don't go on yet. */
  return { take, inHand: () => inHand };
}

export function deliveryKind(body: unknown): DeliveryKind {
  if (textAt(body, "command") !== "") return "command";
  return kinds.get(textAt(body, "type")) ?? "other";
}
