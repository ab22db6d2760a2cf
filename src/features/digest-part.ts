import type { Sight } from "../core/permit/sight.ts";
import type { ButtonSpec } from "../messages/buttons.ts";
import type { Markdown } from "../messages/markdown.ts";
import { defineParts } from "../registry/service-key.ts";

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
  "unknown",
  "review",
  "decision",
  "event",
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
  /** Kinds of facts that its lines tell in words of their own, so that no other line does. */
  tellsFacts?: readonly string[];
  read(
    about: Sight & {
      /** Changes are reported from here on (ms). */
      since: number;
      /** When the digest's facts were read (ms). */
      now: number;
    },
  ): Promise<ReadPart>;
}

export const digestPartsOf = defineParts<DigestPart>("lines of digests and handovers");

/** What a feature contributes to handovers alone: what it has under way that is no request. */
export interface HandoverPart {
  /** How a handover that lacks it calls it. */
  name: string;
  read(about: {
    /** Whether the handover may speak of this VM. Rejects where that can't be read. */
    seesVm(vmId: string): Promise<boolean>;
    /** When all this is read (ms). */
    now: number;
  }): Promise<HandoverList>;
}

export const handoverPartsOf = defineParts<HandoverPart>("lists of handovers");

export interface HandoverList {
  title: string;
  /** Behind the title where there is nothing. Without it, nothing isn't told. */
  none?: string | undefined;
  lines: readonly Markdown[];
}

export interface ReadPart {
  all: readonly LinesOfKind[];
  /** IDs of the events that its lines tell of: no other line does. */
  tellsOf?: ReadonlySet<string>;
  /** VMs that count as failing, whatever their status: by ID, and why. */
  red?: ReadonlyMap<string, string>;
  /** Text after the counts of VMs by status, like `, 🔥 2 with an alert firing`. */
  counts?: string;
  /** What was read only in part, like `the newest 1,000 records of alerts`. */
  cut?: string | undefined;
  /** Buttons below the digest, about all of its time. */
  buttons?: readonly ButtonSpec[];
}
