import { attestationInWords } from "../../attestation/appraiser.ts";
import { defineFeature } from "../define-feature.ts";
import { digestPartsOf } from "../digest-part.ts";
import { keepSnapshots } from "./keep-snapshots.ts";
import { snapshots as listSnapshots } from "./list-snapshots.ts";
import { pickSnapshot } from "./pick-snapshot.ts";
import { restore } from "./restore.ts";
import { snapshotsInDigests } from "./tell-snapshots.ts";
import { snapshot } from "./snapshot.ts";

const dayMs = 86_400_000;

/** Takes snapshots, remembers them, and restores a VM from one. */
export const snapshots = defineFeature({
  name: "snapshots",
  commands: [snapshot, listSnapshots, restore],
  needs: ["config", "snapshots", "inventory", "appraiser", "tellAudit"],
  start(on) {
    const { httpTimeoutMs } = on.config.policy.timing;
    const attestation = (vm: Parameters<typeof attestationInWords>[1]) =>
      attestationInWords(on.appraiser, vm, httpTimeoutMs);
    const keepSeen = async () =>
      on.snapshots.keepSeen((await on.inventory.vms()).map(({ id }) => id));
    return {
      provides: [digestPartsOf.providedBy(snapshotsInDigests(on))],
      schedules: [{ name: "snapshots-kept", repeat: { every: dayMs }, run: keepSeen }],
      pickers: { snapshot: pickSnapshot },
      on: {
        requestEnded: (request, command) => keepSnapshots(request, command, { ...on, attestation }),
      },
    };
  },
});
