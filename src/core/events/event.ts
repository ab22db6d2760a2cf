import type { AuditEntry } from "../../audit/trail.ts";
import type { ButtonSpec, Markdown } from "../../messages/message.ts";
import { recordedVm } from "../cards/tell-record.ts";
import type { Sight } from "../permit/sight.ts";

/** Something that happened, told from the records of the audit trail that prove it. */
export interface Event {
  /**
   * Of events with the same ID one is told: a feature's instead of what the requests alone tell.
   */
  id: string;
  /** When it happened, or began to (ms). */
  at: number;
  /** One sentence that stands alone, after a sign. */
  text: Markdown;
  /** What was read, and when. */
  proof?: Markdown | undefined;
  button?: ButtonSpec | undefined;
  /**
   * IDs of its records, in order. Empty where they tell of something that the reader may not see,
   * too. The event is then in no file.
   */
  records: readonly string[];
}

/** Tells events of its own kinds. */
export interface EventSource {
  /** How a page that lacks them calls them. */
  name: string;
  /** The kinds of audit records that it reads (`what`). */
  what: readonly string[];
  /** `entries` are all records of these kinds, oldest first. */
  read(entries: readonly AuditEntry[], about: Sight): Promise<readonly Event[]>;
}

/** The records about one VM each that the reader saw when they were written, and sees now. */
export function ofSeenVms(entries: readonly AuditEntry[], { vms, only }: Sight) {
  const found = entries.flatMap((entry) => {
    const vm = recordedVm(entry.record, vms);
    return vm ? [{ ...entry, vm }] : [];
  });
  return only(Promise.resolve(found), ({ vm }) => vm);
}

/** The names of the people whom audit records name, as a function that knows them. */
export async function namesIn(
  ids: readonly string[],
  personName: (id: string) => Promise<string>,
): Promise<(id: string) => string> {
  const people = [...new Set(ids)].filter((id) => /^[UW][A-Z0-9]{2,}$/.test(id));
  const names = await Promise.all(people.map(personName));
  const known = new Map(people.map((id, n) => [id, names[n] ?? id]));
  return (id) => known.get(id) ?? id;
}
