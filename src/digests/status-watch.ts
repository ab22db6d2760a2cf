import { createHash } from "node:crypto";
import { statusSign } from "../commands/status-words.ts";
import type { Inventory, KnownVm } from "../inventory/inventory.ts";
import { buttons, context, message, type Message, readable, section } from "../messages/message.ts";
import { duration, lines, md } from "../messages/text.ts";
import type { Keys, RedisClient } from "../redis.ts";
import { compareStatuses, type StatusChange } from "./compare-statuses.ts";
import type { RequestSource } from "./facts.ts";
import { showVm } from "./line-buttons.ts";
import type { SeenStatuses, StatusRecords } from "./status-records.ts";
import { takeTurn } from "./take-turn.ts";

/** A request that ended so long ago may still be why a VM is where it is: lists are read about once a minute. */
const echoMs = 5 * 60_000;
const mostNamed = 10;
/** Others get their turn in this process in between. */
const projectsAtOnce = 100;

export interface StatusWatchOptions {
  redis: RedisClient;
  key: Keys;
  inventory: Pick<Inventory, "vms" | "state">;
  records: StatusRecords;
  requests: Pick<RequestSource, "touched">;
  /** Tells the alerts channel, once per id. */
  tell(id: string, message: Message): Promise<void>;
  everyMs: number;
  now(): number;
}

/**
 * One look at all VMs: those that went to ERROR or stopped without anybody asking Gatehouse are told. It is told first and
 * remembered afterwards: after a crash between the two the same is found and told under the same id, which is not again.
 */
export async function watchStatuses(options: StatusWatchOptions): Promise<void> {
  const { redis, key, inventory, records, requests, tell, everyMs, now } = options;
  const { refreshedAt, stale } = await inventory.state();
  if (refreshedAt === undefined || stale) return;
  // A process whose copy of the list is older than the last one looked at would see yesterday's states come back
  const lookedAt = Number((await redis.get(key("status-watch", "list"))) ?? 0);
  if (refreshedAt <= lookedAt || !(await takeTurn(redis, key, "status-watch", everyMs))) return;
  const projects = Map.groupBy(await inventory.vms(), ({ projectId }) => projectId);
  const changed = new Map<string, SeenStatuses>();
  const changes: StatusChange[] = [];
  const ids = [...projects.keys()];
  for (let from = 0; from < ids.length; from += projectsAtOnce) {
    const some = ids.slice(from, from + projectsAtOnce);
    const before = await records.read(some);
    for (const id of some) {
      const was = before.get(id);
      const compared = compareStatuses(was, projects.get(id) ?? [], now());
      if (compared.after !== was) changed.set(id, compared.after);
      changes.push(...compared.changes);
    }
  }
  const unasked: StatusChange[] = [];
  for (const change of changes)
    if (!(await requests.touched(change.vm, now() - echoMs))) unasked.push(change);
  if (unasked.length > 0) await tell(idOf(unasked), renderUnasked(unasked, everyMs));
  await records.write(changed);
  await records.keepOnly(new Set(ids));
  await redis.set(key("status-watch", "list"), refreshedAt);
}

function idOf(changes: readonly StatusChange[]): string {
  const all = changes.map(({ key }) => key).toSorted();
  return `vm-states-${createHash("sha256").update(all.join("\n")).digest("hex").slice(0, 24)}`;
}

export function renderUnasked(changes: readonly StatusChange[], everyMs: number): Message {
  const shown = changes.slice(0, mostNamed);
  const more = changes.length - shown.length;
  const rows = shown.flatMap(({ vm, from }) => [
    section(sentenceOf(vm, from)),
    ...buttons([showVm(vm.id)]),
  ]);
  const head =
    changes.length === 1
      ? undefined
      : md`*${changes.length} VMs changed, and nobody asked for it here:*`;
  const [first] = changes;
  const summary = head ?? (first ? sentenceOf(first.vm, first.from) : md``);
  return message(
    readable(summary),
    head && section(head),
    ...rows,
    context(
      lines(
        more > 0 && md`… and ${more} more. ${"/vm list"} shows all, those in trouble first.`,
        md`No request of Gatehouse did this. Seen within about ${duration(everyMs)}.`,
      ),
    ),
  );
}

function sentenceOf(vm: KnownVm, from: string | undefined) {
  const did = vm.status === "ERROR" ? "went to ERROR" : "stopped";
  const was = from === undefined ? "" : `, was ${from}`;
  return md`${statusSign(vm.status)} *${vm.name}* in ${vm.projectName} ${did}${was}.`;
}
