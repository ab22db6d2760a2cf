import type { KnownVm } from "../fleet/inventory/inventory.ts";
import type { ButtonSpec, Markdown } from "../messages/message.ts";
import type { Target } from "../registry/define.ts";

export interface Line {
  /** Identifies the line among its kind, for snoozing, for as long as digests have it. */
  key: string;
  text: Markdown;
  /** The one that stands beside it. */
  button: ButtonSpec | undefined;
  /** How many of its kind it stands for; default one. */
  count?: number;
}

/** In which order a digest tells what it has to tell, the most urgent first. */
export const digestPlaces = [
  "freeze",
  "alarm",
  "trouble",
  "unknown",
  "review",
  "decision",
  "change",
  "over",
  "advice",
] as const;

/** How lines of one kind are told. */
export interface KindOfLine {
  /** Singular and plural. */
  words: readonly [one: string, more: string];
  place: (typeof digestPlaces)[number];
  /** Can't be snoozed: somebody must decide, or it is past. */
  isLasting?: boolean;
}

/** Lines of one kind. */
export interface LinesOfKind extends KindOfLine {
  /** Names the kind, for snoozing. */
  kind: string;
  lines: readonly Line[];
}

/** The lines that a feature contributes to digests and handovers. */
export interface DigestPart {
  /** How a digest that lacks it calls it. */
  name: string;
  read(about: {
    /** Those that are spoken of, as far as they could be read. */
    vms: readonly KnownVm[];
    /** Whether everything is spoken of, and not what some see or name alone. */
    seesAll: boolean;
    /** Keeps what is about a VM or project that is spoken of. */
    only<T>(
      reading: Promise<readonly T[]>,
      targetOf: (one: T) => Target | undefined,
    ): Promise<readonly T[]>;
    /** Changes are reported from here on (ms). */
    since: number;
    /** When all this was read (ms). */
    now: number;
  }): Promise<ReadPart>;
}

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

export interface HandoverList {
  title: string;
  /** Behind the title where there is nothing. */
  none: string;
  lines: readonly Markdown[];
}

export interface ReadPart {
  all: readonly LinesOfKind[];
  /** Requests that its lines tell of, by ID: no other line does. */
  tellsOf?: ReadonlySet<string>;
  /** What the line of a request says besides, by its ID. */
  adds?: ReadonlyMap<string, Markdown>;
  /** VMs that count as failing, whatever their status: by ID, and why. */
  red?: ReadonlyMap<string, string>;
  /** Behind the counts of VMs by status, like `, 🔥 2 with an alert firing`. */
  counts?: string;
}
