import { recordedText } from "../../audit/render.ts";
import { type EventKind, type EventSource, namesIn, ofSeenVms } from "../../core/events/event.ts";
import { tellRecord } from "../../core/cards/tell-record.ts";

const kind: EventKind = {
  words: ["change judged by its alert", "changes judged by their alerts"],
  weight: "decision",
};

/** Whether changes ended the alerts that they were to end: the newest judgment of each. */
export const remedyEvents = (personName: (id: string) => Promise<string>): EventSource => ({
  name: "what helped",
  what: ["remedy"],
  async read(entries, about) {
    const seen = await ofSeenVms(entries, about);
    const person = await namesIn(
      seen.map(({ record }) => recordedText(record["who"])),
      personName,
    );
    const byRequest = Map.groupBy(seen, ({ record }) => recordedText(record["request"]));
    return [...byRequest].flatMap(([request, same]) => {
      const last = same.at(-1);
      if (last === undefined) return [];
      const { at, record, vm } = last;
      const text = tellRecord({ ...record, target: vm }, { person, vm: (id) => id });
      const records = same.map(({ id }) => id);
      return { id: `remedy ${request}`, kind, at, endedAt: at, text, records };
    });
  },
});
