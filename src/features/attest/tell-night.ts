import { recordedTargetId, tellRecord } from "../../core/cards/tell-record.ts";
import type { NightPart } from "../night-part.ts";

/** When pinned VMs began to fail attestation, and when that ended. */
export const attestationAtNight: NightPart = {
  name: "attestation",
  what: ["attestation"],
  async read(entries, { vms }) {
    const seen = new Map(vms.map((vm) => [vm.id, vm.name]));
    return entries.flatMap(({ id, at, record }) => {
      const name = seen.get(recordedTargetId(record));
      if (name === undefined) return [];
      const text = tellRecord(record, { person: (one) => one, vm: () => name });
      return [{ key: id, at, text, records: [id] }];
    });
  },
};
