import { hash } from "node:crypto";
import type { Inventory } from "../../fleet/inventory/inventory.ts";
import { lines, type Markdown, md, name, when } from "../../messages/markdown.ts";
import {
  calledName,
  type ChangeCommand,
  type Command,
  nounOf,
  requestable,
  type Target,
} from "../../registry/define.ts";
import type { RecentReader } from "../request/lists.ts";
import { statusWhenRequested } from "../request/record.ts";
import type { StoredRequest } from "../request/stored-request.ts";
import { detailOf, type SinceRequest } from "./asking.ts";
import { isUnconfirmed } from "./render-result.ts";
import { statusOf } from "../request/seen.ts";
import { afterOf, callOf } from "../request/stage.ts";
import { lowerFirst } from "../../text/letter-case.ts";

interface Sources {
  journal: RecentReader;
  inventory: Pick<Inventory, "findVm" | "state" | "vms">;
  commands: readonly Command[];
}

/** How many of the newest requests are read for each target. */
const readOfEach = 20;
const maxVms = 50;
const maxShown = 4;

/**
 * Reads the changes that other requests made to the target, to the project of a VM, and to the VMs
 * of a project, and whether the status of a VM has changed. Empty unless the request waits for
 * approval, because the gate judges every request that runs.
 */
export async function changesSince(
  request: StoredRequest,
  { journal, inventory, commands }: Sources,
): Promise<SinceRequest> {
  if (request.state !== "draft") return [];
  const { target } = request.record;
  const ids = (await targetsAround(target, inventory)).map((targetId) =>
    journal.recentIds({ targetId }, readOfEach),
  );
  const around = await journal.getMany([...new Set((await Promise.all(ids)).flat())]);
  const known = new Map<string, ChangeCommand>(
    requestable(commands).map((command) => [command.name, command]),
  );
  const made = around
    // A request in another project may belong to another team, which the readers don't see.
    .filter((other) => other.record.target.projectId === target.projectId)
    .toSorted((a, b) => b.changedAt - a.changedAt)
    .flatMap((other) => describeChange(other, request, known.get(other.record.command)) ?? []);
  const more = made.length - maxShown;
  return [
    ...(await describeNewStatus(request, around, inventory)),
    ...made.slice(0, maxShown),
    ...(more > 0 ? [md`and ${more} more`] : []),
  ];
}

/** Returns an equal version for equal words, and an empty one when nothing happened. */
export const versionOf = (since: SinceRequest): string =>
  since.length === 0 ? "" : hash("sha256", lines(...since).value).slice(0, 12);

/**
 * Returns the IDs of the requests that wait for approval and whose cards tell what happens to this
 * target.
 */
export async function askingAbout(
  target: Pick<Target, "kind" | "id" | "name" | "projectId">,
  { journal, inventory }: Pick<Sources, "journal" | "inventory">,
): Promise<readonly string[]> {
  const ids = (await targetsAround(target, inventory)).map((targetId) =>
    journal.recentIds({ targetId }, readOfEach),
  );
  const around = await journal.getMany([...new Set((await Promise.all(ids)).flat())]);
  return around.flatMap(({ state, record: other }) => (state === "draft" ? [other.id] : []));
}

/**
 * Returns the targets whose changes concern this one: a VM and its project, or a project and its
 * VMs. A project that isn't made yet has no ID, so its requests are listed under its name.
 */
async function targetsAround(
  { kind, id, name: called, projectId }: Pick<Target, "kind" | "id" | "name" | "projectId">,
  inventory: Pick<Inventory, "vms">,
): Promise<readonly string[]> {
  if (kind === "vm") return [id, projectId];
  if (id === "") return [called];
  const vms = await inventory.vms({ projectId: id });
  return [id, ...vms.slice(0, maxVms).map((vm) => vm.id)];
}

/**
 * Says what another request did since this one was made. Undefined when it sent nothing, ended
 * before, or is part of another request.
 */
function describeChange(
  other: StoredRequest,
  { record }: StoredRequest,
  command: ChangeCommand | undefined,
): Markdown | undefined {
  const { changedAt } = other;
  if (other.record.id === record.id || !command || changedAt <= record.createdAt) return undefined;
  const words = changeWords(other, command, record.target.id);
  const since = other.state === "unknown" ? " since" : ",";
  return words && md`${words}${since} ${when(changedAt, "{time}")}`;
}

/**
 * `olivia restarted it`: what a request did to a target, where `it` is the target with that ID. Undefined for what changed nothing,
 * for what goes on, and for what is part of another request.
 */
export function changeWords(
  { record, stage }: StoredRequest,
  command: ChangeCommand,
  it: string,
): Markdown | undefined {
  const { origin, requester, target, breakGlass } = record;
  if (origin.kind === "safety" || callOf(stage) === undefined) return undefined;
  const targetWords = target.id === it ? md`it` : name(calledName(target));
  const emergency = breakGlass ? " (🚨 break-glass)" : "";
  const { done } = command.say;
  const deed = md`${lowerFirst(done)} ${targetWords}${detailOf(record, command)}`;
  const noun = md`${requester.name}'s ${nounOf(command)} of ${targetWords}${emergency}`;
  switch (stage.state) {
    case "done":
      if (stage.already) return undefined;
      if (isUnconfirmed({ stage }, command)) return md`${noun} was accepted, not confirmed`;
      return md`${requester.name} ${deed}${emergency}${stage.decidedBy ? `, says ${stage.decidedBy.name}` : ""}`;
    case "failed":
      return md`${noun} failed`;
    case "unknown":
      return md`${noun}: outcome unknown`;
    default:
      return undefined;
  }
}

/**
 * Says how the status of a VM changed, and where the last request on it didn't do that. Only an
 * inventory that was read after the request can tell.
 */
async function describeNewStatus(
  { record }: StoredRequest,
  around: readonly StoredRequest[],
  inventory: Pick<Inventory, "findVm" | "state">,
): Promise<SinceRequest> {
  const { target, approval, createdAt } = record;
  const before = approval?.evidence.find(([label]) => label === statusWhenRequested)?.[1];
  if (target.kind !== "vm" || before === undefined) return [];
  const { refreshedAt = 0 } = await inventory.state();
  const known = await inventory.findVm(target.id, { onlyKnown: true });
  if (refreshedAt <= createdAt || !("record" in known)) return [];
  const { id, projectId, status } = known.record;
  if (id !== target.id || projectId !== target.projectId || status === before) return [];
  const [last] = around
    .filter((other) => other.record.target.id === id && afterOf(other.stage) !== undefined)
    .toSorted((a, b) => b.changedAt - a.changedAt);
  const isOther =
    last !== undefined && last.changedAt > createdAt && statusOf(afterOf(last.stage)) !== status;
  const other = isOther ? "; Gatehouse doesn't know what did that" : "";
  return [md`its status changed from ${before} to ${status}${other}`];
}
