import type { Journal } from "../core/request/journal.ts";
import type { Inventory } from "../fleet/inventory/inventory.ts";
import { UserError } from "../errors.ts";
import { snapshotName } from "../fleet/inventory/snapshots.ts";
import type {
  ChangeCommand,
  DialogFacts,
  Effect,
  Refusal,
  Seen,
  Target,
} from "../registry/define.ts";
import type { Args, Input } from "../registry/invocation.ts";
import { hiddenVms, readTarget } from "../core/perform/read-target.ts";
import { pinnedAmong } from "../core/facts/change-facts.ts";
import { chosenSnapshot } from "../core/submit/chosen-snapshot.ts";
import { requestWords } from "../core/cards/deed-words.ts";
import { beforeOf } from "../core/request/stage.ts";
import type { Markdown } from "../messages/markdown.ts";
import type { Details } from "../core/submit/submit.ts";
import type { GatewayContext } from "./gateway-context.ts";

/** The name of the snapshot that the input names by its ID, and when it was taken. */
export function labelsOf(facts: DialogFacts): Pick<Details, "labels" | "snapshotAt"> {
  const chosen = chosenSnapshot(facts);
  const { snapshots, now = Number.POSITIVE_INFINITY } = facts;
  const called = chosen ? snapshotName(chosen, snapshots, now) : "";
  const { at } = chosen ?? {};
  return { ...(called && { labels: { snapshot: called } }), ...(at && { snapshotAt: at }) };
}

/**
 * Reads from the compute service what a person should see before confirming. Throws UserError when
 * VMs of a project can't be read.
 */
export async function gatherFacts(
  command: ChangeCommand,
  target: Target,
  input: Input,
  gateway: GatewayContext,
): Promise<DialogFacts> {
  if (command.on === "new-project")
    return { ...unread(target, input), regions: await regionsKnown(gateway) };
  const read = await readTarget(target, gateway);
  const { seen, vms } = read;
  const hidden = hiddenVms(read);
  if (hidden !== undefined)
    throw new UserError(
      `Nothing was done: ${hidden}.`,
      "Try again later. If it stays so, whoever runs the compute service must repair that record.",
    );
  const ids = target.kind === "vm" ? [target.id] : vms.slice(0, 50).map(({ id }) => id);
  const snapshots = await Promise.all(ids.map((id) => gateway.snapshots.of(id)));
  const all = snapshots.flat();
  const takers = all.flatMap(({ by: taker }) => (taker === "" ? [] : [taker]));
  await gateway.learnNames(takers);
  const takenBy = new Map(takers.map((taker) => [taker, gateway.nameOf(taker) ?? taker]));
  const { snapshot } = input;
  const owner =
    typeof snapshot === "string" ? await gateway.snapshots.ownerOf(snapshot) : undefined;
  const pinned = await pinnedAmong([target], gateway.appraiser);
  return {
    ...unread(target, input),
    isPinned: pinned.has(target.id),
    undoes: await undoneBy(command, target, input, gateway),
    ...(owner !== undefined && owner !== target.id ? { foreignSnapshotOf: owner } : {}),
    seen: Array.isArray(seen) ? undefined : (seen as DialogFacts["seen"]),
    vms,
    snapshots: all,
    takenBy,
    now: gateway.now(),
  };
}

/** How many of a target's newest requests are read. */
const mostRead = 20;

/** The last change that this command made, in words, if the input is what the VM had before it. */
async function undoneBy(
  command: ChangeCommand,
  target: Target,
  input: Input,
  { store }: { store: Journal },
): Promise<Markdown | undefined> {
  if (command.on !== "vm" || !command.back) return undefined;
  const ids = await store.recentIds({ targetId: target.id }, mostRead);
  const made = (await store.getMany(ids)).filter(
    ({ record, state }) => record.command === command.name && state === "done",
  );
  const last = made.toSorted((a, b) => b.changedAt - a.changedAt).at(0);
  const before = last && beforeOf(last.stage);
  const back = before && "projectId" in before ? command.back.input(before) : undefined;
  const isBack = back && Object.entries(back).every(([key, value]) => input[key] === value);
  return last && isBack ? requestWords(last, command) : undefined;
}

/**
 * Facts without a read of the target. They are enough for a request that needs no approval, because
 * the gate reads the target anyway.
 */
export function unread(target: Target, input: Input): DialogFacts {
  return { target, seen: undefined, vms: [], snapshots: [], input };
}

/** Regions of all known projects and VMs, the most used first. */
export async function regionsKnown({
  inventory,
}: {
  inventory: Inventory;
}): Promise<readonly string[]> {
  const all = [...(await inventory.projects()), ...(await inventory.vms())];
  const counts = Map.groupBy(all, ({ region }) => region ?? "");
  counts.delete("");
  return [...counts.entries()]
    .toSorted(([, a], [, b]) => b.length - a.length)
    .map(([region]) => region);
}

/**
 * Why the target's state doesn't allow this change; undefined when it does, and when the target
 * wasn't read.
 */
export function notNow(command: ChangeCommand, { seen }: DialogFacts): Refusal | undefined {
  const effect: Effect<Seen, Args> = command.effect;
  return seen && effect.notNow?.(seen);
}
