import { isSettledVmStatus } from "../compute/settle.ts";
import type { KnownVm } from "../inventory/inventory.ts";
import { duration, md } from "../messages/text.ts";
import { listed } from "./changes.ts";
import type { Facts } from "./facts.ts";
import type { Item } from "./items.ts";
import { showSnapshots } from "./line-buttons.ts";

/** A VM that is younger can't be expected to have one. */
const freshMs = 24 * 3600_000;

/** One line on VMs whose newest known snapshot is old, one on those without. Only what Gatehouse itself took is known. */
export function snapshotItems({ vms, newestSnapshots, now, snapshotOldMs }: Facts): Item[] {
  if (!vms || !newestSnapshots) return [];
  const old: KnownVm[] = [];
  const without: KnownVm[] = [];
  for (const vm of vms) {
    if (!isSettledVmStatus(vm.status) || vm.status === "ERROR") continue;
    const at = newestSnapshots.get(vm.id);
    if (at !== undefined && now - at > snapshotOldMs) old.push(vm);
    if (at === undefined && !(now - Date.parse(vm.createdAt ?? "") < freshMs)) without.push(vm);
  }
  const oldest = old.toSorted(
    (a, b) => (newestSnapshots.get(a.id) ?? 0) - (newestSnapshots.get(b.id) ?? 0),
  );
  const items: Item[] = [];
  if (oldest[0]) items.push(itemOf("old", oldest, oldSentence(oldest, newestSnapshots, now)));
  if (without[0]) items.push(itemOf("none", without, noneSentence(without)));
  return items;
}

function itemOf(key: string, [first]: readonly KnownVm[], text: ReturnType<typeof md>): Item {
  return {
    kind: "snapshot",
    key: `snapshots:${key}`,
    draw: () => ({
      text,
      button: showSnapshots(first?.id ?? ""),
    }),
  };
}

function oldSentence(old: readonly KnownVm[], newest: ReadonlyMap<string, number>, now: number) {
  const age = duration(now - (newest.get(old[0]?.id ?? "") ?? now));
  return old.length === 1
    ? md`💾 The newest snapshot of ${listed(namesOf(old))} is ${age} old.`
    : md`💾 ${old.length} VMs have only old snapshots, the oldest ${age}: ${listed(namesOf(old), 3)}.`;
}

function noneSentence(without: readonly KnownVm[]) {
  const count = without.length.toLocaleString("en-US");
  return without.length === 1
    ? md`💾 I know no snapshot of ${listed(namesOf(without))}.`
    : md`💾 I know no snapshot of ${count} VMs: ${listed(namesOf(without), 3)}.`;
}

const namesOf = (vms: readonly KnownVm[]) => vms.map((vm) => `${vm.projectName}/${vm.name}`);
