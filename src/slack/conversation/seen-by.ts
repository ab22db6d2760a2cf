import { UserError } from "../../errors.ts";
import type { Inventory, Scope } from "../../inventory/inventory.ts";
import type { Snapshots } from "../../inventory/snapshots.ts";
import { isFullMember } from "../../policy/access.ts";
import { ownerOf } from "../../policy/judged.ts";
import { scopeOfPerson } from "../../policy/scope.ts";
import { mayMeet, needsOf } from "../../policy/vote-needs.ts";
import type { Person } from "../../registry/invocation.ts";
import type { Target } from "../../registry/define.ts";
import type { Journal } from "../../requests/journal/journal.ts";
import type { StoredRequest } from "../../requests/journal/record.ts";
import type { StoredRollout } from "../../rollouts/rollout.ts";
import type { Rollouts } from "../../rollouts/rollouts.ts";
import type { Interaction } from "../receive/interaction.ts";
import type { GatewayContext } from "./gateway-context.ts";

/** Whose eyes the parts of a context are looked at with; no scope for those who see everything. */
interface Viewer {
  person(): Promise<Person>;
  scope(): Promise<Scope | undefined>;
}

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
  const { policy, ourTeamId } = gateway;
  const { teams, approvals } = policy;
  if (Object.keys(teams).length === 0 && approvals.every(({ votes }) => !votes)) return gateway;
  let asked: Promise<Person> | undefined;
  const person = () => (asked ??= gateway.person(userId, teamId));
  const scope = async () => scopeOfPerson(policy, await person(), ourTeamId);
  const viewer: Viewer = { person, scope };
  const inventory = gateway.inventory.seenIn(scope);
  return {
    ...gateway,
    inventory,
    store: journalSeenBy(viewer, gateway),
    rollouts: rolloutsSeenBy(viewer, gateway),
    snapshots: snapshotsSeenBy(viewer, gateway.snapshots, inventory),
    status: () => gateway.status(inventory),
  };
}

/** Requests read at once, and at most, to find those that somebody sees. */
const readAtOnce = 200;
const maxRead = 2_000;

/** What tells of no request, or only of one that was read before. */
const tellsNothing = [
  "note",
  "freezeState",
  "freeze",
  "thaw",
  "claimsOf",
  "named",
  "isOlderPolicy",
  "useOnce",
  "throttle",
  "throttledMs",
  "takeTurn",
  "takeHourlyPlace",
  "takeDraftPlace",
  "leaveDraftPlace",
  "votesNotInTrail",
  "giveReason",
  "vote",
  "openReview",
  "closeReview",
  "lockHolder",
  "trim",
  "expectLate",
  "takeLates",
  "lateOver",
  "outbox",
  "sharedCards",
  "now",
  "create",
  "move",
  "holds",
] as const satisfies readonly (keyof Journal)[];

/** The journal without the requests that a person doesn't see. A new method doesn't compile before it is sorted in. */
function journalSeenBy(viewer: Viewer, gateway: GatewayContext): Journal {
  const { store } = gateway;
  const seen = async (requests: readonly StoredRequest[]) => {
    const isSeen = await Promise.all(requests.map((one) => mayRead(one, viewer, gateway)));
    return requests.filter((_, index) => isSeen[index]);
  };
  const ifSeen = async (request: StoredRequest | undefined) =>
    request && (await seen([request]))[0];
  const get: Journal["get"] = async (id) => ifSeen(await store.get(id));
  const getMany: Journal["getMany"] = async (ids) => seen(await store.getMany(ids));
  const idsSeen = async (ids: readonly string[]) =>
    (await getMany(ids)).map(({ record }) => record.id);
  const recentIds: Journal["recentIds"] = async (filter, most) => {
    const ids = await store.recentIds(filter, maxRead);
    const found: string[] = [];
    for (let from = 0; from < ids.length && found.length < most; from += readAtOnce)
      found.push(...(await idsSeen(ids.slice(from, from + readAtOnce))));
    return found.slice(0, most);
  };
  return {
    ...pick(store, tellsNothing),
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
}

function pick<T, K extends keyof T>(from: T, keys: readonly K[]): Pick<T, K> {
  return Object.fromEntries(keys.map((key) => [key, from[key]])) as Pick<T, K>;
}

/** Whoever asked for it, whoever may vote on it, and whoever sees its target. */
async function mayRead(
  { record }: StoredRequest,
  viewer: Viewer,
  gateway: Pick<GatewayContext, "policy" | "ourTeamId" | "inventory">,
): Promise<boolean> {
  const [person, scope] = await Promise.all([viewer.person(), viewer.scope()]);
  if (!scope || record.requester.id === person.id) return true;
  const { approval } = record;
  const mayVote =
    approval !== undefined &&
    isFullMember(person, gateway.ourTeamId) &&
    needsOf(gateway.policy, approval).some((need) => mayMeet(need, person));
  return mayVote || seesTarget(record.target, viewer, gateway);
}

/**
 * Under the name that its project had and under that of now. Where no name is known, nobody of a team can be told from
 * anybody else: only those who see everything.
 */
async function seesTarget(
  target: Target,
  viewer: Pick<Viewer, "scope">,
  { inventory }: Pick<GatewayContext, "inventory">,
): Promise<boolean> {
  const scope = await viewer.scope();
  if (!scope) return true;
  const owner = ownerOf(target);
  const known =
    owner.id === "" ? { unknown: [] } : await inventory.findProject(owner.id, { onlyKnown: true });
  const now = "found" in known && known.found.id === owner.id ? known.found.name : undefined;
  const names = [owner.name, now].filter((name) => name !== undefined);
  return names.length > 0 && names.every((name) => scope.sees({ id: owner.id, name }));
}

/** Rollouts that a person asked for, or whose every VM they see. */
function rolloutsSeenBy(viewer: Viewer, gateway: GatewayContext): Rollouts {
  const { rollouts } = gateway;
  async function isSeen({ record, targets }: StoredRollout): Promise<boolean> {
    const [person, scope] = await Promise.all([viewer.person(), viewer.scope()]);
    if (!scope || record.requester.id === person.id) return true;
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
    openIds: async () => {
      const ids = await rollouts.openIds();
      const open = await Promise.all(ids.map(get));
      return ids.filter((_, index) => open[index] !== undefined);
    },
  };
}

/** Snapshots of VMs that a person sees. */
function snapshotsSeenBy(
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
