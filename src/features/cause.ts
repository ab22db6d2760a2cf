import type { ReadContext } from "../commands/context.ts";
import type { StoredRequest } from "../core/request/stored-request.ts";
import type { ButtonSpec } from "../messages/buttons.ts";
import type { Markdown } from "../messages/markdown.ts";
import type { Target } from "../registry/define.ts";

/** The order of causes, the one that a person must know first at the start. */
export const causePlaces = [
  "outcome",
  "status",
  "attestation",
  "unverified",
  "alert",
  "stopped",
  "freeze",
  "under way",
  "well",
] as const;

/**
 * Something that is wrong with a VM, as `/gatehouse why` says it, or that was looked at for it and
 * is well.
 */
export interface Cause {
  place: (typeof causePlaces)[number];
  sign: string;
  /**
   * One sentence, which names the VM: what is wrong, since when, and after whose request. Of what is
   * well, a clause without its full stop: `its attestation was just verified`.
   */
  text: Markdown;
  /** The next step, where no button takes it. */
  next?: Markdown | undefined;
  /** What ends it, the most useful first. */
  ways?: readonly Way[];
}

/** A button that a reader gets who may run `command`, a dotted name. */
export interface Way {
  command: string;
  button: ButtonSpec;
  /** It sends nothing, so it works during a freeze too. */
  isRecord?: boolean;
}

/** A VM that somebody asks about, and what they may know of it. */
export interface AskedAbout {
  vm: Target;
  /** The newest requests on it that the reader sees, newest first. */
  last: readonly StoredRequest[];
  reading: ReadContext;
}

/** Rejects where it can't be read whether something is wrong. */
export type Explains = (asked: AskedAbout) => Promise<readonly Cause[]>;
