import type { AuditEntry } from "../audit/trail.ts";
import { recordedVm } from "../core/cards/tell-record.ts";
import type { Sight } from "../core/permit/sight.ts";
import type { ButtonSpec, Markdown } from "../messages/message.ts";

/** Something that happened, told from the records of the audit trail that prove it. */
export interface NightAct {
  /**
   * Identifies the act. Of acts with the same key the night shows one: a feature's instead of what
   * the requests alone tell.
   */
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
  read(entries: readonly AuditEntry[], about: Sight): Promise<readonly NightAct[]>;
}

/** The records about one VM each that the reader saw when they were written, and sees now. */
export function ofSeenVms(entries: readonly AuditEntry[], { vms, only }: Sight) {
  const found = entries.flatMap((entry) => {
    const vm = recordedVm(entry.record, vms);
    return vm ? [{ ...entry, vm }] : [];
  });
  return only(Promise.resolve(found), ({ vm }) => vm);
}
