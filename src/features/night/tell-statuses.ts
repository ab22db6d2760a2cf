import { tellRecord } from "../../core/cards/tell-record.ts";
import { type NightPart, ofSeenVms } from "../night-part.ts";

/** VMs that failed, stopped, or recovered without a request to Gatehouse, as the monitor saw it. */
export const statusesAtNight: NightPart = {
  name: "statuses",
  what: ["status"],
  async read(entries, about) {
    const seen = await ofSeenVms(entries, about);
    return seen.map(({ id, at, record, vm }) => {
      const { target: _then, ...rest } = record;
      const named = { ...rest, target: vm.id };
      const text = tellRecord(named, { person: (one) => one, vm: () => vm.name });
      return { key: id, at, text, records: [id] };
    });
  },
};
