import { UserError } from "../../errors.ts";
import type { Inventory } from "../../inventory/inventory.ts";
import type { Snapshots } from "../../inventory/snapshots.ts";
import type { StoredRollout } from "../../rollouts/rollout.ts";
import type { Rollouts } from "../../rollouts/rollouts.ts";
import type { GatewayContext } from "./gateway-context.ts";
import { seesTarget, type Viewer } from "./journal-seen-by.ts";

/** Rollouts that a person asked for, or whose every VM they see. */
export function rolloutsSeenBy(viewer: Viewer, gateway: GatewayContext): Rollouts {
  const { rollouts } = gateway;
  async function isSeen({ record }: StoredRollout): Promise<boolean> {
    const [person, scope] = await Promise.all([viewer.person(), viewer.scope()]);
    if (!scope || record.requester.id === person.id) return true;
    const targets = await rollouts.targets(record.id);
    const ofProjects = new Map(
      targets.map((target) => [`${target.projectId}\n${target.projectName}`, target]),
    );
    const seen = [...ofProjects.values()].map((target) => seesTarget(target, viewer, gateway));
    return seen.length > 0 && (await Promise.all(seen)).every(Boolean);
  }
  const get: Rollouts["get"] = async (id) => {
    const rollout = await rollouts.get(id);
    return rollout && (await isSeen(rollout)) ? rollout : undefined;
  };
  return {
    ...rollouts,
    get,
    stateOf: async (id) => (await get(id))?.state ?? null,
    targets: async (id) => ((await get(id)) ? rollouts.targets(id) : []),
    outcomes: async (id) => ((await get(id)) ? rollouts.outcomes(id) : new Map()),
    openIds: async () => {
      const ids = await rollouts.openIds();
      const open = await Promise.all(ids.map(get));
      return ids.filter((_, index) => open[index] !== undefined);
    },
  };
}

/** Snapshots of VMs that a person sees. */
export function snapshotsSeenBy(
  { scope }: Pick<Viewer, "scope">,
  snapshots: Snapshots,
  /** What the person sees. */
  inventory: Pick<Inventory, "findVm" | "findProject">,
): Snapshots {
  const seesVm = async (vmId: string) => {
    if (!(await scope())) return true;
    const known = await inventory.findVm(vmId, { onlyKnown: true });
    return "found" in known && known.found.id === vmId;
  };
  const of: Snapshots["of"] = async (vmId) => ((await seesVm(vmId)) ? snapshots.of(vmId) : []);
  return {
    ...snapshots,
    of,
    find: async (vmId, words) => ((await seesVm(vmId)) ? snapshots.find(vmId, words) : undefined),
    newest: async () => {
      const all = [...(await snapshots.newest())];
      const seen = await Promise.all(all.map(([vmId]) => seesVm(vmId)));
      return new Map(all.filter((_, index) => seen[index]));
    },
    /**
     * Whoever doesn't see everything restores only what is known to be of a VM that they see: any other ID may hold the data
     * of another team. Throws UserError, the same for an ID that is hidden and for one that is unknown.
     */
    async ownerOf(snapshotId) {
      const owner = await snapshots.ownerOf(snapshotId);
      if (!(await scope()) || (owner !== undefined && (await seesVm(owner)))) return owner;
      throw new UserError(
        `Gatehouse knows no snapshot ${snapshotId} of a VM that you can see.`,
        "With teams, only snapshots taken with Gatehouse can be restored: `/vm snapshots` lists them.",
      );
    },
  };
}
