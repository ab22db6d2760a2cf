import { hash } from "node:crypto";
import { type Compute, statusFacts, unreadable } from "../fleet/compute/compute.ts";
import { statusOf } from "../core/request/seen.ts";
import { afterOf, callOf } from "../core/request/stage.ts";
import { type ChangeCommand, canChangeStatus } from "../registry/define.ts";
import { showVm, whyVm } from "../registry/command-buttons.ts";
import {
  type SeenStatus,
  type SeenStatuses,
  type createStatusRecords,
  echoMs,
  wasSeenOtherwise,
} from "./status-records.ts";
import type { Inventory, KnownVm } from "../fleet/inventory/inventory.ts";
import { statusSign } from "../fleet/inventory/status-order.ts";
import { type Message } from "../messages/blocks.ts";
import { paragraph, waysRow } from "../messages/parts.ts";
import { list, card } from "../messages/card.ts";
import { type Markdown, duration, lines, md } from "../messages/markdown.ts";
import type { Trail } from "../audit/trail.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import type { RecentReader } from "../core/request/lists.ts";
import type { Probe, Telling } from "./monitor.ts";
import type { News } from "./news.ts";

const maxNamed = 10;

interface StatusProbeOptions extends Telling {
  redis: RedisClient;
  key: Keys;
  records: ReturnType<typeof createStatusRecords>;
  /** Keeps what nobody requested, once for each change. */
  trail: Pick<Trail, "appendOnce">;
  inventory: Pick<Inventory, "vms" | "state">;
  store: RecentReader;
  commands: readonly ChangeCommand[];
  compute: { vms: Pick<Compute["vms"], "get"> };
  /** How often the fleet is read (ms). Messages mention it. */
  readEveryMs: number;
  /** Whether something can say why a VM is red. */
  hasWhy?: boolean;
  now(): number;
  /** Called with the VMs whose status has changed, requested or not. */
  onMoved?(vms: readonly KnownVm[]): Promise<void>;
}

/** Reports VMs that went to ERROR or stopped without a request to Gatehouse. */
export function statusProbe(options: StatusProbeOptions): Probe<SeenStatuses, StatusChange> {
  const { redis, key, inventory, records, now } = options;
  const lastList = key("status-watch", "list");
  return {
    name: "statuses",
    records,
    async observe() {
      const { refreshedAt, version, stale } = await inventory.state();
      if (refreshedAt === undefined || stale) return undefined;
      // A process with an older copy of the list would see old statuses come back.
      if (version <= Number(await redis.get(lastList))) return undefined;
      const projects = Map.groupBy(await inventory.vms(), ({ projectId }) => projectId);
      return {
        ids: [...projects.keys()],
        compare: (before) => compareStatuses(before, projects, now()),
        async remembered() {
          await records.keepOnly(new Set(projects.keys()));
          await redis.set(lastList, version);
        },
      };
    },
    async reportChanges(changes) {
      await reportChanges(changes.filter(isNews), options);
      await options.onMoved?.(changes.map(({ vm }) => vm));
    },
  };
}

/**
 * Whether a request explains a VM's status: one that can cause it, on the VM or its project, and
 * that is under way or just left the VM so, and the VM wasn't seen otherwise since. Where one just
 * left it otherwise, the list may have been read while it ran, so the VM is read again: what it is
 * then, the request didn't do.
 */
async function isExplained(
  { vm: { id, projectId, status }, from, fromSince }: StatusChange,
  { store, commands, compute, now }: StatusProbeOptions,
): Promise<boolean> {
  const since = now() - echoMs;
  const seen: SeenStatus = [status, now(), from, fromSince];
  const ids = await Promise.all(
    [id, projectId].map((targetId) => store.recentIds({ targetId }, 20)),
  );
  const requests = (await store.getMany(ids.flat())).filter((request) => {
    const { record, stage, changedAt, state, final } = request;
    const command = commands.find(({ name }) => name === record.command);
    const isWaiting = !final && state !== "unknown";
    return (
      callOf(stage) !== undefined &&
      (isWaiting || (changedAt > since && !wasSeenOtherwise(seen, { status, after: changedAt }))) &&
      (command === undefined || canChangeStatus(command))
    );
  });
  if (requests.some(({ final, stage }) => !final || statusOf(afterOf(stage)) === status))
    return true;
  if (!requests.some(({ state }) => state === "done" || state === "failed")) return false;
  const read = await compute.vms.get(id).catch(() => undefined);
  return read !== undefined && read.status !== status;
}

/**
 * Sends one alarm per owner for changes that nobody requested, and records these. Subscribers are
 * told of all trouble, requested or not.
 */
async function reportChanges(
  changes: readonly StatusChange[],
  options: StatusProbeOptions,
): Promise<void> {
  const { alarms, follow, readEveryMs, hasWhy, trail } = options;
  const unrequested: StatusChange[] = [];
  for (const change of changes) if (!(await isExplained(change, options))) unrequested.push(change);
  for (const change of unrequested)
    await trail.appendOnce(`status ${change.key}`, recordOf(change));
  const unasked = unrequested.filter(isAlarming);
  const toldIn = new Map<StatusChange, string | undefined>();
  for (const [place, some] of Map.groupBy(unasked, ({ vm }) => alarms.placeOf(vm))) {
    const all = some.map(({ key }) => key).toSorted();
    const id = `vm-states-${hash("sha256", all.join("\n")).slice(0, 24)}`;
    const channelId = await alarms.sendAlarm(id, renderUnasked(some, readEveryMs, hasWhy), place);
    for (const change of some) toldIn.set(change, channelId);
  }
  const trouble = changes.filter(isTrouble).map((change): News => {
    const { vm, key } = change;
    const text = statusFacts(vm.status).isAlarming
      ? sentenceOf(change)
      : md`${named(vm)} is no longer in ERROR: it is ${vm.status}.`;
    const line = () => ({ text: text.value, button: showVm(vm) });
    const saidIn = [toldIn.get(change)];
    return { topic: "trouble", key, about: [{ kind: "vm", ...vm }], line, saidIn };
  });
  await follow(trouble);
}

const recordOf = ({ vm, from }: StatusChange) => ({
  what: "status",
  target: {
    kind: "vm",
    id: vm.id,
    name: vm.name,
    projectId: vm.projectId,
    projectName: vm.projectName,
  },
  move: vm.status,
  from,
});

export function renderUnasked(
  changes: readonly StatusChange[],
  everyMs: number,
  hasWhy = false,
): Message {
  const shown = changes.slice(0, maxNamed);
  const many = md`*${changes.length} VMs changed without a request to Gatehouse:*`;
  const isOne = changes.length === 1;
  const rowOf = (change: StatusChange) => {
    const { vm } = change;
    if (!isOne || !hasWhy) return paragraph(sentenceOf(change), showVm(vm));
    return [paragraph(sentenceOf(change)), waysRow([whyVm(vm), showVm(vm)])];
  };
  return card({
    title: isOne ? undefined : many,
    push: isOne ? lines(...shown.map(sentenceOf)) : many,
    body: [
      list(shown.map(rowOf), {
        beyond: changes.length - shown.length,
        rest: (left) => md`… and ${left} more. ${"/vm list"} shows all, problems first.`,
      }),
    ],
    meta: [md`No Gatehouse request did this. Detected within about ${duration(everyMs)}.`],
  });
}

const named = (vm: KnownVm) => md`${statusSign(vm.status)} *${vm.name}* in ${vm.projectName}`;

function sentenceOf({ vm, from }: Pick<StatusChange, "vm" | "from">): Markdown {
  const did = statusFacts(vm.status).isAlarming ? `went to ${vm.status}` : "stopped";
  return md`${named(vm)} ${did}${from === undefined ? "" : `, was ${from}`}.`;
}

interface StatusChange {
  vm: KnownVm;
  from: string | undefined;
  /** Since when it was seen in that status (ms). */
  fromSince?: number | undefined;
  /**
   * Identifies the change in any process: the VM, its new status, and since when it had the old
   * one.
   */
  key: string;
}

/** Whether a change is alarming. A new VM that is STOPPED was never running, so that isn't. */
const isAlarming = ({ from = "CREATING", vm: { status } }: StatusChange): boolean =>
  statusFacts(status).isAlarming || (statusFacts(status).isStopped && from !== "CREATING");

/** Whether the VM went to ERROR or left it. */
const isTrouble = ({ from, vm }: StatusChange) =>
  statusFacts(vm.status).isAlarming || (from !== undefined && statusFacts(from).isAlarming);

const isNews = (change: StatusChange) => isAlarming(change) || isTrouble(change);

/** Compares statuses. A project without a record is new, and nothing in it has changed. Pure. */
function compareStatuses(
  before: ReadonlyMap<string, SeenStatuses>,
  projects: ReadonlyMap<string, readonly KnownVm[]>,
  now: number,
): { after: Map<string, SeenStatuses>; changes: StatusChange[] } {
  const after = new Map<string, SeenStatuses>();
  const changes: StatusChange[] = [];
  for (const [id, vms] of projects) {
    const was = before.get(id);
    // When a status can't be read, nothing is known to have changed.
    const asItWas = (vm: KnownVm) => {
      const it = was?.[vm.id];
      return it?.[0] === vm.status || vm.status === unreadable ? it : undefined;
    };
    const readableVms = vms.filter((vm) => vm.status !== unreadable || asItWas(vm));
    const moved = readableVms.filter((vm) => !asItWas(vm));
    if (was && moved.length === 0 && Object.keys(was).length === readableVms.length) continue;
    const newStatus = ({ id: vmId, status }: KnownVm): SeenStatus => {
      const [from, fromSince] = was?.[vmId] ?? [];
      return from === undefined ? [status, now] : [status, now, from, fromSince];
    };
    const seen = readableVms.map((vm): [string, SeenStatus] => [
      vm.id,
      asItWas(vm) ?? newStatus(vm),
    ]);
    after.set(id, Object.fromEntries(seen));
    for (const vm of was ? moved : []) {
      const [from, fromSince] = was?.[vm.id] ?? [];
      const change = { vm, from, fromSince, key: `${vm.id} ${vm.status} ${fromSince ?? 0}` };
      changes.push(change);
    }
  }
  return { after, changes };
}
