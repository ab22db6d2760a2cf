import { recordedTargetId } from "../../core/cards/tell-record.ts";
import { dayAndTime, md, name } from "../../messages/message.ts";
import type { NightAct, NightPart } from "../night-part.ts";

const textOf = (value: unknown) => (typeof value === "string" ? value : "");

/** Consoles that were opened, and by whom. */
export function consolesAtNight(personName: (id: string) => Promise<string>): NightPart {
  return {
    name: "consoles",
    what: ["console"],
    async read(entries, { vms }) {
      const seen = new Map(vms.map((vm) => [vm.id, vm]));
      const acts = entries.map(async ({ id, at, record }): Promise<NightAct | undefined> => {
        const { until, who } = record;
        const vm = seen.get(recordedTargetId(record));
        if (!vm) return undefined;
        const end = typeof until === "number" ? md`, until ${dayAndTime(until)}` : "";
        const by = await personName(textOf(who));
        const text = md`🖥️ *${by}* opened a console on ${name(vm.name)}${end}.`;
        return { key: id, at, text, records: [id] };
      });
      return (await Promise.all(acts)).filter((act) => act !== undefined);
    },
  };
}
