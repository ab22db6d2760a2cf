import { recordedText } from "../../audit/render.ts";
import { tellRecord } from "../cards/tell-record.ts";
import { type EventKind, type EventSource, namesIn } from "./event.ts";

const kind: EventKind = { words: ["freeze or thaw", "freezes and thaws"], weight: "decision" };

/** Freezes and thaws. Everybody sees them. A freeze goes on until the next thaw. */
export const switchEvents = (personName: (id: string) => Promise<string>): EventSource => ({
  name: "freezes",
  recordKinds: ["freeze", "thaw"],
  async read(entries) {
    const people = entries.flatMap(({ record: { who, ended } }) => [
      recordedText(who),
      byOf(ended),
    ]);
    const person = await namesIn(people, personName);
    return entries.map(({ id, at, record }, n) => {
      const thaw = entries.slice(n).find((later) => later.record["what"] === "thaw");
      const text = tellRecord(record, { person, vm: (vm) => vm });
      return { id, kind, at, endedAt: thaw?.at, text, records: [id] };
    });
  },
});

/** Who made the freeze that a thaw ended. */
const byOf = (ended: unknown): string =>
  typeof ended === "object" && ended !== null && "by" in ended ? recordedText(ended.by) : "";
