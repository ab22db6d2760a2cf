import { restart } from "../../src/commands/vm/restart.ts";
import type { createStatusRecords } from "../../src/digests/status-facts.ts";
import type { KnownVm } from "../../src/inventory/inventory.ts";
import type { Snapshots } from "../../src/inventory/snapshots.ts";
import type { State } from "../../src/requests/journal/record.ts";
import type { Journal } from "../../src/requests/journal/journal.ts";
import { submit } from "../../src/requests/submit/submit.ts";

const hour = 3600_000;
const ended = 1000;
const open = 300;

/**
 * What a large fleet has to tell of a bad day: one VM of fifty in ERROR, 1,300 requests of which 1,000 have ended, and
 * three snapshots of each VM, a fifth of them old. How many VMs are in ERROR.
 */
export async function fillBusyDay(on: {
  controlUrl: string;
  store: Journal;
  snapshots: Snapshots;
  statuses: ReturnType<typeof createStatusRecords>;
  vms: readonly KnownVm[];
}): Promise<number> {
  const { controlUrl, store, snapshots, statuses, vms } = on;
  const now = Date.now();
  const broken = vms.filter((_, n) => n % 50 === 7);
  for (const { id } of broken) {
    const body = JSON.stringify({ vm: id, status: "ERROR" });
    const answer = await fetch(`${controlUrl}/_sandbox/edit/setStatus`, { method: "POST", body });
    if (!answer.ok) throw new Error(`the sandbox would not break ${id}: ${await answer.text()}`);
  }
  const byProject = Map.groupBy(vms, ({ projectId }) => projectId);
  const since = (vm: KnownVm) => [broken.includes(vm) ? "ERROR" : vm.status, now - hour] as const;
  await statuses.write(
    new Map(
      [...byProject].map(([id, some]) => [
        id,
        Object.fromEntries(some.map((vm) => [vm.id, since(vm)])),
      ]),
    ),
  );
  for (const [n, vm] of vms.entries()) {
    const newest = n % 5 === 0 ? 20 * 24 * hour : hour;
    const three = [0, 1, 2].map((older) => ({
      id: `snap-${vm.id}-${older}`,
      name: `nightly-${older}`,
      vmId: vm.id,
      vmName: vm.name,
      projectId: vm.projectId,
      by: "U0OLIVIA",
      at: now - newest - older * 24 * hour,
    }));
    await Promise.all(three.map((snapshot) => snapshots.remember(snapshot)));
  }
  for (const [n, vm] of vms.slice(0, open + ended).entries())
    await request(vm, n < ended ? (["sending", "accepted", "done"] as const) : [], store);
  return broken.length;
}

async function request(vm: KnownVm, moves: readonly State[], store: Journal): Promise<void> {
  const person = { id: "U0OLIVIA", teamId: "T01", name: "olivia", groups: [] };
  const { id } = await submit(
    {
      command: restart,
      input: { vms: [vm.id] },
      target: { kind: "vm", id: vm.id, name: vm.name, projectId: vm.projectId, status: vm.status },
      person: { ...person, kind: "member" },
      channelId: "C01OPS",
      via: "command",
      interactionId: `bench-${vm.id}`,
    },
    {
      store,
      policy: { teams: {} },
      policyVersion: "1",
      staleAfterMs: 3600_000,
    },
  );
  for (const state of moves) {
    const stored = await store.get(id);
    if (!stored) throw new Error("the request is gone");
    const moved = await store.move(stored, { state, progress: stored.progress, why: "bench" });
    if (moved.is !== "moved") throw new Error(`${state}: ${moved.is}`);
  }
}
