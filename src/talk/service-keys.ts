import type { Rehearsed } from "../commands/context.ts";
import type { Asking, LackedRight, Permit } from "../core/permit/permit.ts";
import type { Origin } from "../core/request/origin.ts";
import type { Several } from "../core/submit/resolve-targets.ts";
import type { Message } from "../messages/blocks.ts";
import type { ButtonSpec } from "../messages/buttons.ts";
import type { ChangeCommand } from "../registry/define.ts";
import type { ChangeInvocation } from "../registry/invocation.ts";
import { defineService } from "../registry/service-key.ts";
import type { Actor, Press } from "../slack/receive/interaction.ts";
import type { Act, BeforeAck, GatewayContext } from "./gateway-context.ts";

/**
 * Handles a command that names several VMs. Its person may ask for the command; whether it may run
 * on each VM isn't decided yet.
 */
export type SeveralHandler = (
  invocation: ChangeInvocation,
  several: Several,
  asking: Asking<ChangeCommand>,
  act: Act,
) => Promise<void>;

/** Without it, a command takes one VM. */
export const severalHandlerOf = defineService<SeveralHandler>("commands on several VMs");

/** Tells what would happen to a change. It permits, requests, sends, and counts nothing. */
export interface Rehearsal {
  rehearse(change: Rehearsing, gateway: GatewayContext): Promise<Rehearsed>;
}

/** A change to rehearse, and what would make its request, if that is known. */
export interface Rehearsing {
  permit: Permit;
  origin?: Origin | undefined;
  /** How many of several targets would be changed at a time. */
  atOnce?: number;
}

/** Without it, forms have no “What would happen?”, and `can-i` tells less. */
export const rehearsalOf = defineService<Rehearsal>("the rehearsal of changes");

/** The Home tab: the page that a person sees who opens Gatehouse in Slack. */
export interface HomeTab {
  /** Publishes the tab, with `above` before everything else. False when Slack doesn't show it. */
  show(act: BeforeAck<Actor>, above?: Message): Promise<boolean>;
  /**
   * Handles a press of a button on the tab. Errors that the person caused are shown there; they
   * never reject.
   */
  pressed(act: Act<Press>): Promise<void>;
}

/** Without it, the Home tab stays empty. */
export const homeTabOf = defineService<HomeTab>("the Home tab");

/**
 * Runs right before a request is made, and marks what it is made of as used. Throws UserError if
 * the request may no longer be made.
 */
export type RequestGuard = (
  permit: Permit,
  origin: Origin,
  gateway: GatewayContext,
) => Promise<void>;

export const requestGuardOf = defineService<RequestGuard>("the guard of requests");

/**
 * Buttons beside a refusal for nothing but the lack of this right: what the person who was refused
 * can do instead. What a press may do is decided at the press.
 */
export type OffersAtRefusal = (
  lacked: LackedRight,
  gateway: GatewayContext,
) => readonly ButtonSpec[];

export const offersAtRefusalOf = defineService<OffersAtRefusal>("offers at a refusal");

export const offersAtRefusal: OffersAtRefusal = (lacked, gateway) =>
  offersAtRefusalOf.ifAny(gateway)?.(lacked, gateway) ?? [];
