import { createHash } from "node:crypto";
import { statusSign } from "../inventory/status-words.ts";
import type { Inventory, KnownVm } from "../inventory/inventory.ts";
import { buttons, context, message, type Message, news, section } from "../messages/message.ts";
import { duration, lines, md } from "../messages/text.ts";
import type { Keys, RedisClient } from "../redis/redis.ts";
import type { RequestSource } from "./facts.ts";
import type { Alarms } from "./alarms.ts";
import { showVm } from "./line-buttons.ts";
import type { Follow, News } from "./subscriptions.ts";
import { takeTurn } from "../redis/lease.ts";
import * as z from "zod";

/** A request that ended this recently may explain a status: lists are read about once a minute. */
const echoMs = 5 * 60_000;
const maxNamed = 10;
/** Per call: few enough that neither Redis nor this process blocks. */
const projectsAtOnce = 100;

interface StatusMonitorOptions {
  redis: RedisClient;
  key: Keys;
  inventory: Pick<Inventory, "vms" | "state">;
  records: StatusRecords;
  requests: Pick<RequestSource, "touched">;
  alarms: Alarms;
  /** Tells the channels that are subscribed. */
  follow: Follow;
  everyMs: number;
  now(): number;
}

/**
 * Reports VMs that went to ERROR or stopped without a request to Gatehouse. Reported before it is recorded: after a crash
 * in between it is found again under the same ID, which is posted once.
 */
export async function monitorStatuses(options: StatusMonitorOptions): Promise<void> {
  const { redis, key, inventory, records, requests, alarms, everyMs, now } = options;
  const { refreshedAt, stale } = await inventory.state();
  if (refreshedAt === undefined || stale) return;
  // A process with an older copy of the list would see old statuses come back
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
    if (isAlarming(change) && !(await requests.touched(change.vm, now() - echoMs)))
      unasked.push(change);
  const toldIn = new Map<StatusChange, string | undefined>();
  for (const [place, some] of Map.groupBy(unasked, ({ vm }) => alarms.placeOf(vm))) {
    const channelId = await alarms.tell(idOf(some), renderUnasked(some, everyMs), place);
    for (const change of some) toldIn.set(change, channelId);
  }
  await options.follow(
    changes.filter(isTrouble).map((change) => troubleNews(change, toldIn.get(change))),
  );
  await records.write(changed);
  await records.keepOnly(new Set(ids));
  await redis.set(key("status-watch", "list"), refreshedAt);
}

function idOf(changes: readonly StatusChange[]): string {
  const all = changes.map(({ key }) => key).toSorted();
  return `vm-states-${createHash("sha256").update(all.join("\n")).digest("hex").slice(0, 24)}`;
}

export function renderUnasked(changes: readonly StatusChange[], everyMs: number): Message {
  const shown = changes.slice(0, maxNamed);
  const more = changes.length - shown.length;
  const rows = shown.flatMap(({ vm, from }) => [
    section(sentenceOf(vm, from)),
    ...buttons([showVm(vm.id)]),
  ]);
  const head =
    changes.length === 1
      ? undefined
      : md`*${changes.length} VMs changed without a request to Gatehouse:*`;
  const [first] = changes;
  const summary = head ?? (first ? sentenceOf(first.vm, first.from) : md``);
  return message(
    news(summary),
    head && section(head),
    ...rows,
    context(
      lines(
        more > 0 && md`… and ${more} more. ${"/vm list"} shows all, problems first.`,
        md`No Gatehouse request did this. Detected within about ${duration(everyMs)}.`,
      ),
    ),
  );
}

function sentenceOf(vm: KnownVm, from: string | undefined) {
  const did = vm.status === "ERROR" ? "went to ERROR" : "stopped";
  const was = from === undefined ? "" : `, was ${from}`;
  return md`${statusSign(vm.status)} *${vm.name}* in ${vm.projectName} ${did}${was}.`;
}

function troubleNews(change: StatusChange, toldIn: string | undefined): News {
  const { vm, from, key } = change;
  const ended = md`${statusSign(vm.status)} *${vm.name}* in ${vm.projectName} is no longer in ERROR: it is ${vm.status}.`;
  const text = vm.status === "ERROR" ? sentenceOf(vm, from) : ended;
  return {
    event: "trouble",
    key,
    about: [{ kind: "vm", ...vm }],
    line: () => ({ text: text.value, button: showVm(vm.id) }),
    saidIn: [toldIn],
  };
}

interface StatusChange {
  vm: KnownVm;
  from: string | undefined;
  /** Identifies the change in any process: the VM, its new status, and since when it had the old one. */
  key: string;
}

/** Without `before`, a project is new and nothing in it has changed. Pure; `after` is `before` when nothing differs. */
function compareStatuses(
  before: SeenStatuses | undefined,
  vms: readonly KnownVm[],
  now: number,
): { after: SeenStatuses; changes: StatusChange[] } {
  const after: Record<string, readonly [string, number]> = {};
  const changes: StatusChange[] = [];
  let differs = before === undefined || Object.keys(before).length !== vms.length;
  for (const vm of vms) {
    const was = before?.[vm.id];
    if (was?.[0] === vm.status) {
      after[vm.id] = was;
      continue;
    }
    differs = true;
    after[vm.id] = [vm.status, now];
    const change = { vm, from: was?.[0], key: `${vm.id} ${vm.status} ${was?.[1] ?? 0}` };
    if (before && (isAlarming(change) || isTrouble(change))) changes.push(change);
  }
  return { after: !differs && before ? before : after, changes };
}

/** A new VM that is STOPPED was never running. */
function isAlarming({ from, vm }: StatusChange): boolean {
  if (vm.status === "ERROR") return true;
  return vm.status === "STOPPED" && from !== undefined && from !== "CREATING";
}

/** It went to ERROR, or came out of it. */
function isTrouble({ from, vm }: StatusChange): boolean {
  return vm.status === "ERROR" || from === "ERROR";
}

/** In which status a VM was last seen, and since when (ms). */
type SeenStatus = readonly [status: string, since: number];
/** By VM id: all VMs of one project. */
type SeenStatuses = Readonly<Record<string, SeenStatus>>;

const stored = z.record(z.string(), z.tuple([z.string(), z.number()]));

/** What was last seen of every VM, by project, for all processes. */
export function createStatusRecords(redis: RedisClient, key: Keys) {
  const seen = key("seen-statuses");

  async function read(projectIds: readonly string[]): Promise<Map<string, SeenStatuses>> {
    const found = new Map<string, SeenStatuses>();
    for (let from = 0; from < projectIds.length; from += projectsAtOnce) {
      const ids = projectIds.slice(from, from + projectsAtOnce);
      const rows = await redis.hmget(seen, ...ids);
      for (const [index, text] of rows.entries())
        if (text !== null) found.set(ids[index] ?? "", stored.parse(JSON.parse(text)));
    }
    return found;
  }

  return {
    read,
    async write(changed: ReadonlyMap<string, SeenStatuses>): Promise<void> {
      const rows = [...changed];
      for (let from = 0; from < rows.length; from += projectsAtOnce) {
        const some = rows.slice(from, from + projectsAtOnce);
        await redis.hset(seen, new Map(some.map(([id, all]) => [id, JSON.stringify(all)])));
      }
    },
    async keepOnly(projectIds: ReadonlySet<string>): Promise<void> {
      const gone = (await redis.hkeys(seen)).filter((id) => !projectIds.has(id));
      for (let from = 0; from < gone.length; from += projectsAtOnce)
        await redis.hdel(seen, ...gone.slice(from, from + projectsAtOnce));
    },
    /** Since when these are in the status they are in, where that is known. */
    async since(vms: readonly KnownVm[]): Promise<Map<string, number>> {
      const records = await read([...new Set(vms.map(({ projectId }) => projectId))]);
      const known = new Map<string, number>();
      for (const vm of vms) {
        const found = records.get(vm.projectId)?.[vm.id];
        if (found && found[0] === vm.status) known.set(vm.id, found[1]);
      }
      return known;
    },
  };
}

export type StatusRecords = ReturnType<typeof createStatusRecords>;
