import { dayAndTime, md, name } from "../../messages/message.ts";
import { type NightAct, type NightPart, ofSeenVms } from "../night-part.ts";

const textOf = (value: unknown) => (typeof value === "string" ? value : "");

/** Consoles that were opened, and by whom. */
export function consolesAtNight(personName: (id: string) => Promise<string>): NightPart {
  return {
    name: "consoles",
    what: ["console", "console-opening", "console-unopened"],
    async read(entries, about) {
      const seen = await ofSeenVms(entries, about);
      /** IDs of openings of which the trail says what came of them. */
      const answered = new Set(seen.map(({ record }) => textOf(record["opening"])));
      const acts = seen.map(async ({ id, at, record, vm }): Promise<NightAct | undefined> => {
        const { what, until, who, opening } = record;
        const by = await personName(textOf(who));
        if (what === "console") {
          const end = typeof until === "number" ? md`, until ${dayAndTime(until)}` : "";
          const text = md`🖥️ *${by}* opened a console on ${name(vm.name)}${end}.`;
          const before = seen.some((entry) => entry.id === opening) ? [textOf(opening)] : [];
          return { key: id, at, text, records: [...before, id] };
        }
        if (what !== "console-opening" || answered.has(id)) return undefined;
        const text = md`🖥️ *${by}* asked for a console on ${name(vm.name)}. Whether it opened is unknown.`;
        return { key: id, at, text, records: [id] };
      });
      return (await Promise.all(acts)).filter((act) => act !== undefined);
    },
  };
}
