import type { AuditEntry } from "../audit/trail.ts";
import { recordedVm } from "../core/cards/tell-record.ts";
import type { KnownVm } from "../fleet/inventory/inventory.ts";
import type { SeenTarget } from "../core/permit/sight.ts";
import type { ButtonSpec, Markdown } from "../messages/message.ts";

/** Something that happened, told from the records of the audit trail that prove it. */
export interface NightAct {
  /** Identifies the act, so that what was done about it stands below it. */
  key: string;
  /** When it began (ms). */
  at: number;
  /** One sentence, beginning with a sign. */
  text: Markdown;
  /** What was read, and when. */
  proof?: Markdown | undefined;
  button?: ButtonSpec | undefined;
  /**
   * IDs of its records, in order. Empty where they tell of something that the reader may not see,
   * too. The act is then in no file.
   */
  records: readonly string[];
}

/** What a feature tells of a stretch of time: its own kinds of audit records, as acts. */
export interface NightPart {
  /** How a page that lacks it calls it. */
  name: string;
  /** The kinds of records that it tells of (`what`). */
  what: readonly string[];
  /** `entries` are all records of these kinds, oldest first. */
  read(entries: readonly AuditEntry[], about: NightSight): Promise<readonly NightAct[]>;
}

/** The limits of what a reader of the night may see. */
export interface NightSight {
  /** The VMs that the reader sees. */
  vms: readonly KnownVm[];
  /** Whether the reader sees everything. */
  seesAll: boolean;
  /** Keeps what is about a VM or project that the reader sees. */
  only<T>(
    reading: Promise<readonly T[]>,
    targetOf: (one: T) => SeenTarget | undefined,
  ): Promise<readonly T[]>;
}

/** The records about one VM each that the reader saw when they were written, and sees now. */
export function ofSeenVms(entries: readonly AuditEntry[], { vms, only }: NightSight) {
  const found = entries.flatMap((entry) => {
    const vm = recordedVm(entry.record, vms);
    return vm ? [{ ...entry, vm }] : [];
  });
  return only(Promise.resolve(found), ({ vm }) => vm);
}
