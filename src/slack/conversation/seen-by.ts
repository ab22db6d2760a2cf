import { UserError } from "../../errors.ts";
import { isFullMember } from "../../policy/access.ts";
import { ownerOf } from "../../policy/judged.ts";
import { scopeOfPerson } from "../../policy/scope.ts";
import { mayMeet, needsOf } from "../../policy/vote-needs.ts";
import type { Person } from "../../registry/invocation.ts";
import type { Target } from "../../registry/define.ts";
import type { JournalReads } from "../../requests/journal/journal.ts";
import type { StoredRequest } from "../../requests/journal/record.ts";
import type { Rollouts } from "../../rollouts/rollouts.ts";
import type { Interaction } from "../receive/interaction.ts";
import type { GatewayContext } from "./gateway-context.ts";

/** Requests read at once, and at most, to find those that somebody sees. */
const readAtOnce = 200;
const maxRead = 2_000;

/**
 * What the person behind an interaction may see of everything: the VMs and projects of their teams and of no team, and the
 * requests, rollouts, and snapshots of them. Every handler gets this instead of the whole, so that a new command can't
 * forget it; what is hidden is answered like what doesn't exist. Without teams, and without rules that name who votes, it is
 * the whole.
 */
export function seenBy(
  { userId, teamId }: Pick<Interaction, "userId" | "teamId">,
  gateway: GatewayContext,
): GatewayContext {
  const { policy, ourTeamId, store, rollouts, snapshots } = gateway;
  const { teams, approvals } = policy;
  if (Object.keys(teams).length === 0 && approvals.every(({ votes }) => !votes)) return gateway;
  let asked: Promise<Person> | undefined;
  const person = () => (asked ??= gateway.person(userId, teamId));
  /** Undefined for those who see everything. */
  const scope = async () => scopeOfPerson(policy, await person(), ourTeamId);
  const inventory = gateway.inventory.seenIn(scope);

  /**
   * Under the name that its project had and under that of now. Where no name is known, nobody of a team can be told from
   * anybody else: only those who see everything.
   */
  async function sees(target: Target): Promise<boolean> {
    const places = await scope();
    if (!places) return true;
    const { id, name } = ownerOf(target);
    const known = id !== "" && (await gateway.inventory.findProject(id, { onlyKnown: true }));
    const now = known && "found" in known && known.found.id === id ? known.found.name : undefined;
    const names = [name, now].filter((one) => one !== undefined);
    return names.length > 0 && names.every((one) => places.sees({ id, name: one }));
  }

  /** Whoever asked for it, whoever may vote on it, and whoever sees its target. */
  async function mayRead({ record }: StoredRequest): Promise<boolean> {
    const one = await person();
    if (record.requester.id === one.id) return true;
    const needs =
      record.approval && isFullMember(one, ourTeamId) ? needsOf(policy, record.approval) : [];
    return needs.some((need) => mayMeet(need, one)) || sees(record.target);
  }

  const seen = async (requests: readonly StoredRequest[]) => {
    const isSeen = await Promise.all(requests.map(mayRead));
    return requests.filter((_, index) => isSeen[index]);
  };
  const ifSeen = async (request: StoredRequest | undefined) =>
    request && (await seen([request]))[0];
  const get: JournalReads["get"] = async (id) => ifSeen(await store.get(id));
  const getMany: JournalReads["getMany"] = async (ids) => seen(await store.getMany(ids));
  const idsSeen = async (ids: readonly string[]) =>
    (await getMany(ids)).map(({ record }) => record.id);
  const recentIds: JournalReads["recentIds"] = async (filter, most) => {
    const ids = await store.recentIds(filter, maxRead);
    const found: string[] = [];
    for (let from = 0; from < ids.length && found.length < most; from += readAtOnce)
      found.push(...(await idsSeen(ids.slice(from, from + readAtOnce))));
    return found.slice(0, most);
  };
  /** The whole half, or it doesn't compile. */
  const reads: JournalReads = {
    get,
    getMany,
    recentIds,
    openIds: async () => idsSeen(await store.openIds()),
    openCount: async () => (await recentIds({ open: true }, maxRead)).length,
    idsAskedBetween: async (...between) => idsSeen(await store.idsAskedBetween(...between)),
    madeBy: async (interactionId) => ifSeen(await store.madeBy(interactionId)),
    history: async (id) => ((await get(id)) ? store.history(id) : []),
    review: async (id) => ((await get(id)) ? store.review(id) : undefined),
    openReviews: async () => {
      const reviews = await store.openReviews();
      const ids = new Set(await idsSeen(reviews.map(({ request }) => request)));
      return reviews.filter(({ request }) => ids.has(request));
    },
  };

  /** A rollout that the person asked for, or whose every VM they see. */
  const getRollout: Rollouts["get"] = async (id) => {
    const rollout = await rollouts.get(id);
    if (!rollout || !(await scope()) || rollout.record.requester.id === userId) return rollout;
    const ofProjects = Map.groupBy(
      rollout.targets,
      ({ projectId, projectName }) => `${projectId}\n${projectName}`,
    );
    const isSeen = await Promise.all(
      [...ofProjects.values()].map(async ([one]) => one && sees(one)),
    );
    return isSeen.length > 0 && isSeen.every(Boolean) ? rollout : undefined;
  };

  const seesVm = async (vmId: string) => {
    if (!(await scope())) return true;
    const known = await inventory.findVm(vmId, { onlyKnown: true });
    return "found" in known && known.found.id === vmId;
  };

  return {
    ...gateway,
    inventory,
    store: { ...store, ...reads },
    rollouts: {
      ...rollouts,
      get: getRollout,
      stateOf: async (id) => (await getRollout(id))?.state ?? null,
      openIds: async () => {
        const ids = await rollouts.openIds();
        const open = await Promise.all(ids.map(getRollout));
        return ids.filter((_, index) => open[index] !== undefined);
      },
    },
    snapshots: {
      ...snapshots,
      of: async (vmId) => ((await seesVm(vmId)) ? snapshots.of(vmId) : []),
      find: async (vmId, words) => ((await seesVm(vmId)) ? snapshots.find(vmId, words) : undefined),
      newest: async () => {
        const all = [...(await snapshots.newest())];
        const isSeen = await Promise.all(all.map(([vmId]) => seesVm(vmId)));
        return new Map(all.filter((_, index) => isSeen[index]));
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
    },
    status: () => gateway.status(inventory),
  };
}
