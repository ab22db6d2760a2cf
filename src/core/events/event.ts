import type { AuditEntry } from "../../audit/read-audit.ts";
import type { ButtonSpec } from "../../messages/buttons.ts";
import type { Markdown } from "../../messages/markdown.ts";
import { recordedVm, tellRecord } from "../cards/tell-record.ts";
import type { Sight } from "../permit/sight.ts";

/** Something that happened, told from the records of the audit trail that prove it. */
export interface Event {
  /**
   * Identifies the event. Where several sources tell the same event, the last one counts.
   */
  id: string;
  kind: EventKind;
  /** When it happened, or began to (ms). */
  at: number;
  /** When it was over (ms). Undefined while it goes on. */
  endedAt: number | undefined;
  /** One sentence that stands alone, after a sign. */
  text: Markdown;
  /** Says which statuses were read, and when. */
  proof?: Markdown | undefined;
  button?: ButtonSpec | undefined;
  /** Lets events that differ only in their target be told in one sentence. */
  deed?: Deed;
  /**
   * IDs of its records, in order. Empty where they tell of something that the reader may not see,
   * too. The event is then in no file.
   */
  records: readonly string[];
}

export interface EventKind {
  /** Singular and plural, for counts. */
  words: readonly [singular: string, plural: string];
  /**
   * `decision`: whoever is in charge reads each one. `routine`: several may be told together.
   * `detail`: only who reads everything reads it.
   */
  weight: "decision" | "routine" | "detail";
}

/** A change like others: `✅ *olivia* restarted `, and its target. */
export interface Deed {
  begin: Markdown;
  target: string;
}

export interface EventSight extends Sight {
  /** The entries are an excerpt of the trail, so an event names no records from before them. */
  isExcerpt?: boolean;
}

/** Topics of subscriptions: VMs go to ERROR or leave it, attestation fails, changes are made. */
export const topics = ["trouble", "drift", "changes"] as const;
export type Topic = (typeof topics)[number];

/** Tells events of its own kinds. */
export interface EventSource {
  /** How a page that lacks them calls them. */
  name: string;
  /** The kinds of audit records that it reads (`what`). */
  recordKinds: readonly string[];
  /**
   * The topic under which subscribers and recaps are told its events as soon as the trail has them.
   * Undefined for what nobody subscribes to, and for what is told by whoever learned of it, who
   * knows more than the record.
   */
  topic?: Topic;
  /** `entries` are records of these kinds, oldest first. */
  read(entries: readonly AuditEntry[], about: EventSight): Promise<readonly Event[]>;
}

/** The records about one VM each that the reader saw when they were written, and sees now. */
export function ofSeenVms(entries: readonly AuditEntry[], { vms, only }: Sight) {
  const named = entries.flatMap((entry) => {
    const vm = recordedVm(entry.record, vms);
    return vm ? [{ ...entry, vm }] : [];
  });
  return only(Promise.resolve(named), ({ vm }) => vm);
}

/**
 * Tells each record of one kind about one VM as an event, under the name that the VM has now.
 * `isTrouble`: whether the record says that trouble began, which goes on until the VM's next record.
 */
export const vmEvents = (
  name: string,
  recordKind: string,
  kind: EventKind,
  isTrouble: (record: AuditEntry["record"]) => boolean,
): EventSource => ({
  name,
  recordKinds: [recordKind],
  async read(entries, about) {
    const seen = await ofSeenVms(entries, about);
    return seen.map(({ id, at, record, vm }, n) => {
      const text = tellRecord(
        { ...record, target: vm.id },
        { person: (person) => person, vm: () => vm.name },
      );
      const next = seen.slice(n + 1).find((later) => later.vm.id === vm.id);
      return { id, kind, at, endedAt: isTrouble(record) ? next?.at : at, text, records: [id] };
    });
  },
});

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
