import { isSettledVmStatus } from "../../fleet/compute/compute.ts";
import type { Config } from "../../config/config.ts";
import type { DigestPart, Line } from "../digest-part.ts";
import type { KnownVm } from "../../fleet/inventory/inventory.ts";
import type { Snapshots } from "../../fleet/inventory/snapshots.ts";
import { duration, md, listed } from "../../messages/markdown.ts";
import { dottedName, runButton } from "../../registry/define.ts";
import { parseTime } from "../../text/parse-time.ts";
import { snapshots as listSnapshots } from "./list-snapshots.ts";

/** The age of an old snapshot if gatehouse.yml sets none (ms). */
const usualOldMs = 7 * 24 * 3600_000;
/** VMs younger than this need no snapshot yet (ms). */
const freshMs = 24 * 3600_000;

/**
 * The lines of digests about snapshots: one for VMs with only old ones, the oldest first, and one
 * for VMs without any. Only snapshots taken with Gatehouse are known.
 */
export function snapshotsInDigests(on: {
  snapshots: Pick<Snapshots, "newest">;
  config: Pick<Config, "policy">;
}): DigestPart {
  return {
    name: "snapshots",
    async read({ vms, now }) {
      const oldMs = on.config.policy.attestation.maxSnapshotAgeMs ?? usualOldMs;
      const newest = await on.snapshots.newest();
      const settled = vms.filter(({ status }) => isSettledVmStatus(status) && status !== "ERROR");
      const ageOf = (vm: KnownVm) => now - (newest.get(vm.id) ?? now);
      const old = settled.filter((vm) => ageOf(vm) > oldMs).toSorted((a, b) => ageOf(b) - ageOf(a));
      const isFresh = ({ createdAt }: KnownVm) => now - (parseTime(createdAt) ?? 0) < freshMs;
      const without = settled.filter((vm) => !newest.has(vm.id) && !isFresh(vm));
      const inTime = `No snapshot that Gatehouse knows of in the last ${duration(oldMs)}`;
      const lines = [
        ...lineOn("old", old, inTime),
        ...lineOn("none", without, "No snapshot that Gatehouse knows of"),
      ];
      const words = ["about snapshots", "about snapshots"] as const;
      return { all: [{ kind: "snapshot", words, place: "advice", lines }] };
    },
  };
}

function lineOn(key: string, vms: readonly KnownVm[], problem: string): Line[] {
  const [first] = vms;
  if (!first) return [];
  const names = vms.map((vm) => `${vm.projectName}/${vm.name}`);
  const label = `Snapshots of ${first.name}`;
  const button = runButton(label, dottedName(listSnapshots), { vm: first.id });
  return [{ key, text: md`💾 ${problem}: ${listed(names, 3)}.`, button }];
}
