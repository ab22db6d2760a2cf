import * as z from "zod";
import type { KnownVm } from "../inventory/inventory.ts";
import type { Keys, RedisClient } from "../redis.ts";

/** In which status a VM was last seen, and since when (ms). */
export type SeenStatus = readonly [status: string, since: number];
/** By VM id: all VMs of one project. */
export type SeenStatuses = Readonly<Record<string, SeenStatus>>;

/** Projects read at once: enough to be quick, few enough that neither Redis nor this process stands still. */
const chunk = 100;

const stored = z.record(z.string(), z.tuple([z.string(), z.number()]));

/** What was last seen of every VM, by project, for all processes. */
export function createStatusRecords(redis: RedisClient, key: Keys) {
  const seen = key("seen-statuses");

  async function read(projectIds: readonly string[]): Promise<Map<string, SeenStatuses>> {
    const found = new Map<string, SeenStatuses>();
    for (let from = 0; from < projectIds.length; from += chunk) {
      const ids = projectIds.slice(from, from + chunk);
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
      for (let from = 0; from < rows.length; from += chunk) {
        const some = rows.slice(from, from + chunk);
        await redis.hset(seen, new Map(some.map(([id, all]) => [id, JSON.stringify(all)])));
      }
    },
    async keepOnly(projectIds: ReadonlySet<string>): Promise<void> {
      const gone = (await redis.hkeys(seen)).filter((id) => !projectIds.has(id));
      for (let from = 0; from < gone.length; from += chunk)
        await redis.hdel(seen, ...gone.slice(from, from + chunk));
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
