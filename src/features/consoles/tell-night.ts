import { dayAndTime, md, name } from "../../messages/message.ts";
import { type NightAct, type NightPart, ofSeenVms } from "../night-part.ts";

const textOf = (value: unknown) => (typeof value === "string" ? value : "");

/** Consoles that were opened, and by whom. */
export function consolesAtNight(personName: (id: string) => Promise<string>): NightPart {
  return {
    name: "consoles",
    what: ["console"],
    async read(entries, about) {
      const seen = await ofSeenVms(entries, about);
      const acts = seen.map(async ({ id, at, record, vm }): Promise<NightAct> => {
        const { until, who } = record;
        const end = typeof until === "number" ? md`, until ${dayAndTime(until)}` : "";
        const by = await personName(textOf(who));
        const text = md`🖥️ *${by}* opened a console on ${name(vm.name)}${end}.`;
        return { key: id, at, text, records: [id] };
      });
      return Promise.all(acts);
    },
  };
}
