import type { Finding } from "../messages/finding.ts";
import { defineParts } from "../registry/service-key.ts";

/** A line of `/gatehouse status`. */
export interface StatusPart {
  name: string;
  /** Reads the state of this part. Rejects when it can't be read. */
  find(): Promise<Finding>;
}

/** The lines that features add to `/gatehouse status`. */
export const statusPartsOf = defineParts<StatusPart>("lines of /gatehouse status");

/** A message that no channel shows yet. */
export interface Untold {
  /** The source or service that caused it, as gatehouse.yml names it. */
  source: string;
  /** Singular and plural: `alert group`. */
  words: readonly [one: string, more: string];
}

/** Lists of messages that have waited unusually long for a channel, for `/gatehouse status`. */
export const untoldOf = defineParts<() => Promise<readonly Untold[]>>("untold messages");
