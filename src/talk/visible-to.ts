import { UserError } from "../errors.ts";
import type { Scope } from "../fleet/inventory/inventory.ts";
import { isFullMember, scopeOfPerson, scopeOfView, seesUnder } from "../core/permit/access.ts";
import { mayMeet, needsOf } from "../core/permit/approval-rule.ts";
import { ownerOf } from "../core/permit/refusal.ts";
import type { SeenTarget } from "../core/permit/sight.ts";
import { commandWithRole } from "../registry/command-roles.ts";
import type { Person } from "../registry/invocation.ts";
import type { JournalReads } from "../core/request/journal.ts";
import type { StoredRequest } from "../core/request/stored-request.ts";
import type { Actor } from "../slack/receive/interaction.ts";
import { batches } from "../redis/batches.ts";
import type { GatewayContext } from "./gateway-context.ts";

/** How many requests are read at a time, and at most, to find those that a person may see. */
const readAtOnce = 200;
const maxRead = 2_000;

/** The person or program whose view is limited. */
interface Viewer {
  /** The VMs and projects that the viewer sees; undefined when the viewer sees everything. */
  scope(): Promise<Scope | undefined>;
  /** Whether the viewer may read this request even if its target is hidden. */
  mayReadAnyway(request: StoredRequest): Promise<boolean>;
}

/**
 * Limits the context to what the person behind an interaction may see: the VMs and projects of
 * their teams and of no team, with the requests and snapshots of those. Every handler gets this
 * instead of the full context, so that a new command can't forget it. What is hidden is answered
 * like what doesn't exist. The full context is returned when the policy has no teams and no rule
 * that names who votes.
 */
export function seenBy({ userId, teamId }: Actor, gateway: GatewayContext): GatewayContext {
  const { policy, ourTeamId } = gateway;
  const { teams, approvals } = policy;
  if (Object.keys(teams).length === 0 && approvals.every(({ votes }) => !votes)) return gateway;
  let asked: Promise<Person> | undefined;
  const person = () => (asked ??= gateway.person(userId, teamId));
  const viewer: Viewer = {
    scope: async () => scopeOfPerson(policy, await person(), ourTeamId),
    /** True for the requester, and for a person who may vote on the request. */
    async mayReadAnyway({ record }) {
      const reader = await person();
      if (record.requester.id === reader.id) return true;
      const needs =
        record.approval && isFullMember(reader, ourTeamId) ? needsOf(policy, record.approval) : [];
      return needs.some((need) => mayMeet(need, reader));
    },
  };
  return seenFrom(viewer, gateway);
}

/** Limits the context to what a program's `view` in gatehouse.yml names. */
export function seenByService(view: readonly string[], gateway: GatewayContext): GatewayContext {
  const scope = scopeOfView(view);
  const viewer = { scope: async () => scope, mayReadAnyway: async () => false };
  return seenFrom(viewer, gateway);
}

async function filterSeen<T>(
  all: readonly T[],
  isSeen: (record: T) => Promise<boolean>,
): Promise<T[]> {
  const seen = await Promise.all(all.map(isSeen));
  return all.filter((_, index) => seen[index]);
}

function seenFrom(viewer: Viewer, gateway: GatewayContext): GatewayContext {
  const { scope } = viewer;
  const { store, snapshots } = gateway;
  const inventory = gateway.inventory.seenIn(scope);

  async function sees(target: SeenTarget): Promise<boolean> {
    const places = await scope();
    if (!places) return true;
    const { id, name } = ownerOf(target);
    const known = id !== "" && (await gateway.inventory.findProject(id, { onlyKnown: true }));
    const now =
      known && "record" in known && known.record.id === id ? known.record.name : undefined;
    return seesUnder(places, id, [name, now]);
  }

  const mayRead = async (request: StoredRequest) =>
    (await viewer.mayReadAnyway(request)) || sees(request.record.target);

  const ifSeen = async (request: StoredRequest | undefined) =>
    request && (await mayRead(request)) ? request : undefined;
  const get: JournalReads["get"] = async (id) => ifSeen(await store.get(id));
  const getMany: JournalReads["getMany"] = async (ids) =>
    filterSeen(await store.getMany(ids), mayRead);
  async function idsSeen(ids: readonly string[]): Promise<string[]> {
    const seen: string[] = [];
    for (const batch of batches(ids))
      seen.push(...(await getMany(batch)).map(({ record }) => record.id));
    return seen;
  }
  const recentIds: JournalReads["recentIds"] = async (filter, most) => {
    const ids = await store.recentIds(filter, maxRead);
    const seen: string[] = [];
    for (let from = 0; from < ids.length && seen.length < most; from += readAtOnce)
      seen.push(...(await idsSeen(ids.slice(from, from + readAtOnce))));
    return seen.slice(0, most);
  };
  /** The type makes sure that no read of the journal bypasses the view. */
  const reads: JournalReads = {
    get,
    getMany,
    recentIds,
    openIds: async () => idsSeen(await store.openIds()),
    openCount: async () => (await recentIds({ open: true }, maxRead)).length,
    idsAskedBetween: async (...between) => idsSeen(await store.idsAskedBetween(...between)),
    madeBy: async (origin) => ifSeen(await store.madeBy(origin)),
    history: async (id) => ((await get(id)) ? store.history(id) : []),
  };

  const seesVm = async (vmId: string) => {
    if (!(await scope())) return true;
    const known = await inventory.findVm(vmId, { onlyKnown: true });
    return "record" in known && known.record.id === vmId;
  };

  return {
    ...gateway,
    inventory,
    store: { ...store, ...reads },
    seesAll: async () => (await scope()) === undefined,
    sees: async (targets) =>
      targets.length > 0 && (await Promise.all(targets.map(sees))).every(Boolean),
    snapshots: {
      ...snapshots,
      of: async (vmId) => ((await seesVm(vmId)) ? snapshots.of(vmId) : []),
      find: async (vmId, words) => ((await seesVm(vmId)) ? snapshots.find(vmId, words) : undefined),
      newest: async () =>
        new Map(await filterSeen([...(await snapshots.newest())], ([vmId]) => seesVm(vmId))),
      /**
       * A person who doesn't see everything restores only snapshots that are known to be of a VM
       * they see: any other ID may hold the data of another team. Throws the same UserError for a
       * hidden and for an unknown ID.
       */
      async ownerOf(snapshotId) {
        const owner = await snapshots.ownerOf(snapshotId);
        if (!(await scope()) || (owner !== undefined && (await seesVm(owner)))) return owner;
        const lister = commandWithRole(gateway.commands, "lists-snapshots");
        throw new UserError(
          `Gatehouse knows no snapshot ${snapshotId} of a VM that you can see.`,
          `With teams, only snapshots taken with Gatehouse can be restored${lister ? `: \`/${lister.name}\` lists them` : ""}.`,
        );
      },
    },
    status: () => gateway.status(inventory),
  };
}
