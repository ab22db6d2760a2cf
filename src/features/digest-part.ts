import type { KnownVm } from "../fleet/inventory/inventory.ts";
import type { ButtonSpec, Markdown } from "../messages/message.ts";

export interface Line {
  /** Identifies the line within its kind for snoozing, as long as digests have the line. */
  key: string;
  text: Markdown;
  /** The button beside the line. */
  button: ButtonSpec | undefined;
  /** How many events the line stands for; 1 by default. */
  count?: number;
}

/** The order of lines in a digest, the most urgent first. */
export const digestPlaces = [
  "freeze",
  "alarm",
  "trouble",
  "decision",
  "change",
  "over",
  "advice",
] as const;

/** How lines of one kind are shown. */
export interface KindOfLine {
  /** Singular and plural, for counts. */
  words: readonly [one: string, more: string];
  place: (typeof digestPlaces)[number];
  /** Lines of this kind can't be snoozed, because a person must decide or the event is past. */
  isLasting?: boolean;
}

/** Lines of one kind. */
export interface LinesOfKind extends KindOfLine {
  /** Name of the kind, for snoozing. */
  kind: string;
  lines: readonly Line[];
}

/** The lines that a feature contributes to digests and handovers. */
export interface DigestPart {
  /** Name of the part in a digest that couldn't read it. */
  name: string;
  read(about: {
    /** The VMs that the digest is about, as far as they could be read. */
    vms: readonly KnownVm[];
    /** True if the digest is about everything, not only about what a team sees or globs name. */
    seesAll: boolean;
    /** Changes after this time are reported (ms). */
    since: number;
    /** When the digest's facts were read (ms). */
    now: number;
  }): Promise<ReadPart>;
}

export interface ReadPart {
  all: readonly LinesOfKind[];
  /** VMs that count as failing whatever their status, by ID, each with the reason. */
  red?: ReadonlyMap<string, string>;
  /** Text after the counts of VMs by status, like `, 🔥 2 with an alert firing`. */
  counts?: string;
}
