import { tellRecord } from "../../core/cards/tell-record.ts";
import { type EventSource, ofSeenVms } from "../../core/events/event.ts";

/** When pinned VMs began to fail attestation, and when that ended. */
export const attestationEvents: EventSource = {
  name: "attestation",
  what: ["attestation"],
  async read(entries, about) {
    const seen = await ofSeenVms(entries, about);
    return seen.map(({ id, at, record, vm }) => {
      const named = { ...record, target: vm.id };
      const text = tellRecord(named, { person: (one) => one, vm: () => vm.name });
      return { id, at, text, records: [id] };
    });
  },
};
