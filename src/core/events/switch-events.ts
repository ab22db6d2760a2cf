import { recordedText } from "../../audit/render.ts";
import { tellRecord } from "../cards/tell-record.ts";
import { type EventSource, namesIn } from "./event.ts";

/** Freezes and thaws. Everybody sees them. */
export const switchEvents = (personName: (id: string) => Promise<string>): EventSource => ({
  name: "freezes",
  what: ["freeze", "thaw"],
  async read(entries) {
    const people = entries.flatMap(({ record: { who, ended } }) => [
      recordedText(who),
      byOf(ended),
    ]);
    const person = await namesIn(people, personName);
    return entries.map(({ id, at, record }) => ({
      id,
      at,
      text: tellRecord(record, { person, vm: (vm) => vm }),
      records: [id],
    }));
  },
});

/** Who made the freeze that a thaw ended. */
const byOf = (ended: unknown): string =>
  typeof ended === "object" && ended !== null && "by" in ended ? recordedText(ended.by) : "";
