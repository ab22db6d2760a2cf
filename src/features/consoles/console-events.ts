import type { AuditEntry } from "../../audit/read-audit.ts";
import { dayAndTime, md, name } from "../../messages/markdown.ts";
import {
  type Event,
  type EventKind,
  type EventSource,
  ofSeenVms,
} from "../../core/events/event.ts";

const textOf = (value: unknown) => (typeof value === "string" ? value : "");

const isOpening = ({ record }: AuditEntry) => record["what"] === "console-opening";

const kind: EventKind = { words: ["console", "consoles"], weight: "decision" };

/** Consoles that were opened, and by whom. */
export function consoleEvents(personName: (id: string) => Promise<string>): EventSource {
  return {
    name: "consoles",
    recordKinds: ["console", "console-opening", "console-unopened"],
    async read(entries, about) {
      const seen = await ofSeenVms(entries, about);
      const [openings, answers] = [
        seen.filter(isOpening),
        seen.filter((entry) => !isOpening(entry)),
      ];
      const begun = new Map(openings.map(({ id, record }) => [textOf(record["opening"]), id]));
      const answered = new Set(answers.map(({ record }) => textOf(record["opening"])));
      const acts = seen.map(async ({ id, at, record, vm }): Promise<Event | undefined> => {
        const { what: recordKind, until, who, opening } = record;
        const opener = await personName(textOf(who));
        if (recordKind === "console") {
          const end = typeof until === "number" ? md`, until ${dayAndTime(until)}` : "";
          const text = md`🖥️ *${opener}* opened a console on ${name(vm.name)}${end}.`;
          const before = begun.get(textOf(opening));
          return {
            id,
            kind,
            at,
            endedAt: at,
            text,
            records: [...(before === undefined ? [] : [before]), id],
          };
        }
        if (recordKind !== "console-opening" || answered.has(textOf(opening))) return undefined;
        const text = md`🖥️ *${opener}* asked for a console on ${name(vm.name)}. Whether it opened is unknown.`;
        return { id, kind, at, endedAt: at, text, records: [id] };
      });
      return (await Promise.all(acts)).filter((act) => act !== undefined);
    },
  };
}
