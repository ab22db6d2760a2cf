import { hash } from "node:crypto";
import { unreadable } from "../compute/compute.ts";
import type { Inventory, KnownVm } from "../inventory/inventory.ts";
import { statusSign } from "../inventory/known.ts";
import {
  type Markdown,
  type Message,
  context,
  duration,
  lines,
  list,
  md,
  message,
  news,
  section,
} from "../messages/message.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import { showVm } from "./line-buttons.ts";
import { createRecords } from "./monitor-records.ts";
import type { RequestSource } from "./request-facts.ts";
import type { News } from "./subscriptions.ts";
import { type MonitorOptions, watch } from "./watch.ts";

/** A request that ended this recently may explain a status: lists are read about once a minute. */
const echoMs = 5 * 60_000;
const maxNamed = 10;

interface StatusMonitorOptions extends MonitorOptions<SeenStatuses> {
  inventory: Pick<Inventory, "vms" | "state">;
  requests: Pick<RequestSource, "touched">;
  /** The VMs whose status is another one than before, of their own accord or not. */
  onMoved?(vms: readonly KnownVm[]): Promise<void>;
}

/** Reports VMs that went to ERROR or stopped without a request to Gatehouse. */
export async function monitorStatuses(options: StatusMonitorOptions): Promise<void> {
  const { redis, key, inventory, records, now } = options;
  const { refreshedAt, stale } = await inventory.state();
  if (refreshedAt === undefined || stale) return;
  // A process with an older copy of the list would see old statuses come back
  const lookedAt = Number(await redis.get(key("status-watch", "list")));
  if (refreshedAt <= lookedAt) return;
  const projects = Map.groupBy(await inventory.vms(), ({ projectId }) => projectId);
  await watch({
    records,
    ids: [...projects.keys()],
    compare: (before) => compareStatuses(before, projects, now()),
    tell: async (changes) => {
      await tell(changes.filter(isNews), options);
      await options.onMoved?.(changes.map(({ vm }) => vm));
    },
  });
  await records.keepOnly(new Set(projects.keys()));
  await redis.set(key("status-watch", "list"), refreshedAt);
}

/** What nobody asked for is one alarm for each team; subscribers hear of all trouble, asked for or not. */
async function tell(
  changes: readonly StatusChange[],
  { requests, alarms, follow, everyMs, now }: StatusMonitorOptions,
): Promise<void> {
  const unasked: StatusChange[] = [];
  for (const change of changes)
    if (isAlarming(change) && !(await requests.touched(change.vm, now() - echoMs)))
      unasked.push(change);
  const toldIn = new Map<StatusChange, string | undefined>();
  for (const [place, some] of Map.groupBy(unasked, ({ vm }) => alarms.placeOf(vm))) {
    const all = some.map(({ key }) => key).toSorted();
    const id = `vm-states-${hash("sha256", all.join("\n")).slice(0, 24)}`;
    const channelId = await alarms.tell(id, renderUnasked(some, everyMs), place);
    for (const change of some) toldIn.set(change, channelId);
  }
  const trouble = changes.filter(isTrouble).map((change): News => {
    const { vm, key } = change;
    const text =
      vm.status === "ERROR"
        ? sentenceOf(change)
        : md`${named(vm)} is no longer in ERROR: it is ${vm.status}.`;
    const line = () => ({ text: text.value, button: showVm(vm.id) });
    const saidIn = [toldIn.get(change)];
    return { event: "trouble", key, about: [{ kind: "vm", ...vm }], line, saidIn };
  });
  await follow(trouble);
}

export function renderUnasked(changes: readonly StatusChange[], everyMs: number): Message {
  const shown = changes.slice(0, maxNamed);
  const many = md`*${changes.length} VMs changed without a request to Gatehouse:*`;
  const isOne = changes.length === 1;
  return message(
    news(isOne ? lines(...shown.map(sentenceOf)) : many),
    isOne ? undefined : section(many),
    list(
      shown.map((change) => section(sentenceOf(change), showVm(change.vm.id))),
      {
        beyond: changes.length - shown.length,
        rest: (left) => md`… and ${left} more. ${"/vm list"} shows all, problems first.`,
      },
    ),
    context(md`No Gatehouse request did this. Detected within about ${duration(everyMs)}.`),
  );
}

const named = (vm: KnownVm) => md`${statusSign(vm.status)} *${vm.name}* in ${vm.projectName}`;

function sentenceOf({ vm, from }: Pick<StatusChange, "vm" | "from">): Markdown {
  const did = vm.status === "ERROR" ? "went to ERROR" : "stopped";
  return md`${named(vm)} ${did}${from === undefined ? "" : `, was ${from}`}.`;
}

interface StatusChange {
  vm: KnownVm;
  from: string | undefined;
  /** Identifies the change in any process: the VM, its new status, and since when it had the old one. */
  key: string;
}

/** A new VM that is STOPPED was never running. */
const isAlarming = ({ from = "CREATING", vm: { status } }: StatusChange): boolean =>
  status === "ERROR" || (status === "STOPPED" && from !== "CREATING");

/** It went to ERROR, or came out of it. */
const isTrouble = ({ from, vm }: StatusChange) => vm.status === "ERROR" || from === "ERROR";

const isNews = (change: StatusChange) => isAlarming(change) || isTrouble(change);

/** A project without a record is new, and nothing in it has changed. Pure. */
function compareStatuses(
  before: ReadonlyMap<string, SeenStatuses>,
  projects: ReadonlyMap<string, readonly KnownVm[]>,
  now: number,
): { after: Map<string, SeenStatuses>; changes: StatusChange[] } {
  const after = new Map<string, SeenStatuses>();
  const changes: StatusChange[] = [];
  for (const [id, vms] of projects) {
    const was = before.get(id);
    // Without a status that can be read, nothing is known to have changed
    const asItWas = (vm: KnownVm) => {
      const it = was?.[vm.id];
      return it?.[0] === vm.status || vm.status === unreadable ? it : undefined;
    };
    const readableVms = vms.filter((vm) => vm.status !== unreadable || asItWas(vm));
    const moved = readableVms.filter((vm) => !asItWas(vm));
    if (was && moved.length === 0 && Object.keys(was).length === readableVms.length) continue;
    const seen = readableVms.map((vm): [string, SeenStatus] => [
      vm.id,
      asItWas(vm) ?? [vm.status, now],
    ]);
    after.set(id, Object.fromEntries(seen));
    for (const vm of was ? moved : []) {
      const [from, since = 0] = was?.[vm.id] ?? [];
      const change = { vm, from, key: `${vm.id} ${vm.status} ${since}` };
      changes.push(change);
    }
  }
  return { after, changes };
}

/** In which status a VM was last seen, and since when (ms). */
type SeenStatus = readonly [status: string, since: number];
/** By VM id: all VMs of one project. */
type SeenStatuses = Readonly<Record<string, SeenStatus>>;

/** What was last seen of every VM, by project. */
export function createStatusRecords(redis: RedisClient, key: Keys) {
  const records = createRecords<SeenStatuses>(redis, key("seen-statuses"));
  return {
    ...records,
    /** Since when these are in the status they are in, where that is known. */
    async since(vms: readonly KnownVm[]): Promise<Map<string, number>> {
      const seen = await records.read([...new Set(vms.map(({ projectId }) => projectId))]);
      const known = vms.flatMap(({ id, projectId, status }) => {
        const [was, since] = seen.get(projectId)?.[id] ?? [];
        return was === status && since !== undefined ? [[id, since] as const] : [];
      });
      return new Map(known);
    },
  };
}
