import type { GatehouseFactSource } from "../core/facts/gatehouse-fact.ts";
import { defineParts } from "../registry/service-key.ts";

/** What features know of Gatehouse itself: a line each of `/gatehouse status`. */
export const gatehouseFactsOf = defineParts<GatehouseFactSource>("facts about Gatehouse itself");

/** A message that no channel shows yet. */
export interface Untold {
  /** The source or service that caused it, as gatehouse.yml names it. */
  source: string;
  /** Singular and plural: `alert group`. */
  words: readonly [one: string, more: string];
}

/** Lists of messages that have waited unusually long for a channel, for `/gatehouse status`. */
export const untoldOf = defineParts<() => Promise<readonly Untold[]>>("untold messages");
