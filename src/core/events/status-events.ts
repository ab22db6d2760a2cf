import { tellRecord } from "../cards/tell-record.ts";
import { type EventSource, ofSeenVms } from "./event.ts";

/** VMs that failed, stopped, or recovered without a request to Gatehouse, as the monitor saw it. */
export const statusEvents: EventSource = {
  name: "statuses",
  what: ["status"],
  async read(entries, about) {
    const seen = await ofSeenVms(entries, about);
    return seen.map(({ id, at, record, vm }) => {
      const { target: _then, ...rest } = record;
      const named = { ...rest, target: vm.id };
      const text = tellRecord(named, { person: (one) => one, vm: () => vm.name });
      return { id, at, text, records: [id] };
    });
  },
};
