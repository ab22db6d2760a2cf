import { recordedVm, tellRecord } from "../../core/cards/tell-record.ts";
import type { NightPart } from "../night-part.ts";

/** When pinned VMs began to fail attestation, and when that ended. */
export const attestationAtNight: NightPart = {
  name: "attestation",
  what: ["attestation"],
  async read(entries, { vms, only }) {
    const found = entries.flatMap((entry) => {
      const vm = recordedVm(entry.record, vms);
      return vm ? [{ ...entry, vm }] : [];
    });
    const seen = await only(Promise.resolve(found), ({ vm }) => vm);
    return seen.map(({ id, at, record, vm }) => {
      const about = { ...record, target: vm.id };
      const text = tellRecord(about, { person: (one) => one, vm: () => vm.name });
      return { key: id, at, text, records: [id] };
    });
  },
};
