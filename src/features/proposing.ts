import type { LackedRight } from "../core/permit/permit.ts";
import { defineService } from "../registry/service-key.ts";
import type { Person } from "../registry/invocation.ts";
import type { GatewayContext } from "../talk/gateway-context.ts";

/** A change that a person asks others to run, because they lack the right to it themselves. */
export interface AskedChange {
  /** Identifies what was pressed: the same ID is the same proposal, however often it is sent. */
  id: string;
  asker: Person;
  /** The change, and who may make it. */
  lacked: LackedRight;
  reason: string;
  /** The channel in which it was asked; empty where there is none. */
  channelId: string;
}

/** The action of buttons that open the form in which a person asks others. */
export const askAction = "ask:open";

/** What a feature that keeps proposals does for people who ask others. */
export interface Proposing {
  /**
   * Proposes the change to those who may make it. Whoever runs it requests it, with their own
   * rights and the usual approvals; the asker is told the result. Resolves with the channel of its
   * card. Throws UserError where nobody could run it, or the asker has too many open.
   */
  propose(
    change: AskedChange,
    gateway: GatewayContext,
  ): Promise<{ channelId: string; isNew: boolean }>;
}

export const proposingOf = defineService<Proposing>("proposing");
