import { hash } from "node:crypto";
import * as z from "zod";

/** Longer than any ID of Gatehouse, and than the name of a command. */
const id = z.string().min(1).max(80);

/**
 * A button below the card of a request. Each button makes one request, however often and by
 * whomever it is pressed.
 */
const requestButton = z.object({
  kind: z.literal("request"),
  /** The request whose card has the button. */
  request: id,
  press: z.enum(["again", "retry", "undo", "next"]),
  /** The command that "next" runs. */
  command: id.exactOptional(),
  /** The request whose safety snapshot it restores. */
  undoes: id.exactOptional(),
  /** The person who asked others to make the request that it repeats, and so can't approve it. */
  asker: id.exactOptional(),
});

const alertButton = z.object({
  kind: z.literal("alert"),
  /** ID of the alert. */
  alert: id,
  /** The VM and the command of the button. */
  vm: id,
  command: id,
  /** How many requests the alert had made when its message showed the button. */
  after: z.int().nonnegative(),
});

const proposalButton = z.object({
  kind: z.literal("proposal"),
  /** ID of the proposal. */
  proposal: id,
  /** The person who asked others to run it, and so can't approve it. */
  asker: id.exactOptional(),
  /** The name of whoever proposed it to others, and why, as approvers read it. */
  asked: z.object({ by: z.string().max(100), why: z.string().max(500) }).exactOptional(),
});

/** A button that runs a typed command whose answer Slack lost. Both make the same request. */
const lostCommand = z.object({
  kind: z.literal("typed"),
  /** The ID of the command's delivery. */
  interaction: id,
});

/**
 * A button that makes one request. The form that it opens carries this origin, and makes the same
 * request.
 */
export const buttonOrigin = z.discriminatedUnion("kind", [
  requestButton,
  alertButton,
  proposalButton,
  lostCommand,
]);
export type ButtonOrigin = z.output<typeof buttonOrigin>;

/** What made a request. */
export type Origin =
  /** A slash command, a mention, or a form that one of them opened. `interaction`: the ID of its delivery. */
  | { kind: "typed" | "mention" | "form"; interaction: string }
  /**
   * A button that runs a command. `press` identifies the button in its message, or the delivery
   * where the button has no message.
   */
  | { kind: "button"; press: string }
  | ButtonOrigin
  /** One target of a rollout. `request`: the ID that was claimed for it. */
  | { kind: "rollout"; rollout: string; request: string }
  /**
   * The snapshot that is taken before `request` replaces data. `take` counts those that replace an
   * outdated one: 2 for the second. The first has none.
   */
  | { kind: "safety"; request: string; take?: number };

/** An origin as a request stores it. */
export const storedOrigin: z.ZodType<Origin> = z.union([
  buttonOrigin,
  z.looseObject({ kind: z.enum(["typed", "mention", "form"]), interaction: z.string() }),
  z.looseObject({ kind: z.literal("button"), press: z.string() }),
  z.looseObject({ kind: z.literal("rollout"), rollout: z.string(), request: z.string() }),
  z.looseObject({
    kind: z.literal("safety"),
    request: z.string(),
    take: z.number().exactOptional(),
  }),
]);

/** Two requests with the same key are one: the second finds the first. */
export function originKey(origin: Origin): string {
  switch (origin.kind) {
    case "typed":
    case "mention":
    case "form":
      return `${origin.kind} ${origin.interaction}`;
    case "button":
      return `button ${origin.press}`;
    case "request": {
      const { request, press, command = "", undoes = "" } = origin;
      return ["request", request, press, command, undoes].join(" ");
    }
    case "alert":
      return ["alert", origin.alert, origin.vm, origin.command, origin.after].join(" ");
    case "proposal":
      return `proposal ${origin.proposal}`;
    case "rollout":
      return `rollout ${origin.rollout} ${origin.request}`;
    case "safety":
      return `safety ${origin.request}${origin.take ? ` ${origin.take}` : ""}`;
    default:
      return origin satisfies never;
  }
}

/**
 * Identifies a button in a message that stays. A second press of it within a day counts as the first
 * one.
 */
export function pressOf(button: {
  channelId: string;
  messageTs: string;
  action: string;
  value: string;
}): string {
  const { channelId, messageTs, action, value } = button;
  return hash("sha256", JSON.stringify([channelId, messageTs, action, value]));
}

/** Returns the request whose safety snapshot this one restores, if it is an undo. */
export function undoneBy({ origin }: { origin: Origin }): string | undefined {
  return origin.kind === "request" ? origin.undoes : undefined;
}

/**
 * Returns the person who asked others to make this request, or the one that it repeats: they can't
 * approve it.
 */
export function askerOf({ origin }: { origin: Origin }): string | undefined {
  return origin.kind === "proposal" || origin.kind === "request" ? origin.asker : undefined;
}

/** Returns who proposed this request to others, and why. */
export const askedIn = ({ origin }: { origin: Origin }): z.output<typeof proposalButton>["asked"] =>
  origin.kind === "proposal" ? origin.asked : undefined;

/**
 * Returns the request that this one repeats, so that whoever asked for that one asked for this one
 * too. Nobody asked for an undo, or for another command on the same target.
 */
export function repeatedBy({ origin }: { origin: Origin }): string | undefined {
  const isRepeat =
    origin.kind === "request" && (origin.press === "again" || origin.press === "retry");
  return isRepeat ? origin.request : undefined;
}

/**
 * Whether the button asks to repeat what was just done. An equal request that was done is then not
 * the same one.
 */
export const asksForMore = (origin: Origin): boolean =>
  origin.kind === "request" && origin.press === "again";

/**
 * Returns the origin for the audit trail, without the fields that only tell one delivery from
 * another.
 */
export function auditOrigin(origin: Origin): Record<string, unknown> {
  switch (origin.kind) {
    case "typed":
    case "mention":
    case "form":
    case "button":
      return { kind: origin.kind };
    case "proposal": {
      // The record of the proposal says already who made it, and why.
      const { asked: _asked, ...rest } = origin;
      return rest;
    }
    default:
      return origin;
  }
}
