import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { startRedis } from "../../sandbox/ensure-redis.ts";
import {
  type Compute,
  type Project,
  type Vm,
  ComputeError,
} from "../../src/fleet/compute/compute.ts";
import { createInventory } from "../../src/fleet/inventory/create-inventory.ts";
import type { Inventory } from "../../src/fleet/inventory/inventory.ts";
import { silentLog } from "../../src/log/log.ts";
import { connectRedis, createKeys, type Keys, type RedisClient } from "../../src/redis/redis.ts";
import { longestTurn } from "../support/longest-turn.ts";
import { noService } from "../fleet/inventory/no-service.ts";
import { type Figure, quantile } from "./figure.ts";

const projects = 5_000;
const vmsPerProject = 20;
/** A person's command is acknowledged within some milliseconds whatever else its process does. */
export const longestTurnMs = 50;

interface Place {
  redis: RedisClient;
  key: Keys;
}

/** 100,000 VMs: what a search and a refresh hold up, and how soon a name is found. */
export async function measureInventory(): Promise<readonly Figure[]> {
  await using server = await startRedis();
  const redis = await connectRedis(server.url, "commands", silentLog());
  try {
    const at = { redis, key: createKeys("bench") };
    const turns = await longestTurns(at);
    const longest = (kind: Turn["kind"]) =>
      Math.max(...turns.filter((turn) => turn.kind === kind).map(({ ms }) => ms));
    const vms = (projects * vmsPerProject).toLocaleString("en");
    return [
      {
        name: `${vms} VMs: the longest turn of the event loop in a search, in a refresh`,
        values: (["search", "refresh"] as const).map((kind) => ({
          value: longest(kind),
          unit: "ms",
          most: longestTurnMs,
        })),
      },
      {
        name: `finding one of ${vms} VMs by a name, a third of them misspelled: p99`,
        values: [{ value: quantile(await lookUpTimes(at), 0.99), unit: "ms", most: 50 }],
      },
    ];
  } finally {
    redis.disconnect();
  }
}

/** How long the event loop was held up (ms). */
export interface Turn {
  kind: "search" | "refresh";
  what: string;
  ms: number;
}

/** What one process does with a large fleet that it reads, and another that takes it over from Redis. */
export async function longestTurns(at: Place): Promise<readonly Turn[]> {
  const by = { ...at, log: silentLog(), refreshMs: 3_600_000, againMs: 1_000, concurrency: 32 };
  const writer = createInventory({ ...by, compute: busyFleet() });
  const reader = createInventory({ ...by, compute: fleetService(0, 0) });
  const turns: Turn[] = [];
  const measure = async (kind: Turn["kind"], what: string, work: () => Promise<unknown>) => {
    turns.push({ kind, what, ms: await longestTurn(work) });
  };
  const search = async (inventory: Inventory) => {
    await inventory.findVm("web-eu-7o770", { onlyKnown: true });
    await nextTurn();
    await inventory.suggestVms("eu-9");
    await nextTurn();
    await inventory.matchVms("no-such-*");
  };
  const isThere = async (status: string) => {
    const deadline = performance.now() + 20_000;
    // Until the first load is over, it knows none and says so
    const known = () => reader.vms().catch(() => []);
    while (!(await known()).some((vm) => vm.status === status)) {
      if (performance.now() > deadline) throw new Error(`the reader knows no VM that is ${status}`);
      await sleep(50);
    }
  };
  await measure("refresh", "first refresh", () => writer.refresh());
  await measure("search", "search after it", () => search(writer));
  await measure("refresh", "load by another process", () => isThere("RUNNING"));
  await measure("search", "search after that", () => search(reader));
  await measure("search", "a team's first search", () =>
    search(reader.seenIn(async () => ({ key: "team", sees: ({ id }) => /[0-7]$/.test(id) }))),
  );
  await measure("refresh", "refresh with changes", () => writer.refresh());
  await measure("refresh", "taking them over", () => isThere("ERROR"));
  await measure("search", "search after a change", () => search(reader));
  const [vm] = await writer.vms();
  if (!vm) throw new Error("none is known");
  await measure("refresh", "note of a new VM", () =>
    writer.note({ vm: { ...vm, id: "new", name: "new" } }),
  );
  await measure("search", "search after that note", () => search(writer));
  const [found] = await writer.suggestVms("new", 1);
  if (found?.id !== "new") throw new Error("the new VM isn't found");
  await Promise.all([writer.close(), reader.close()]);
  return turns;
}

/** 2,000 lookups in an inventory that is read from Redis (ms). */
async function lookUpTimes(at: Place): Promise<readonly number[]> {
  const compute = fleetService(0, 0);
  const inventory = createInventory({
    ...at,
    compute,
    log: silentLog(),
    refreshMs: 3_600_000,
    againMs: 1_000,
  });
  const vms = await inventory.vms();
  const took: number[] = [];
  for (let n = 0; n < 2_000; n += 1) {
    const name = vms[(n * 7919) % vms.length]?.name ?? "";
    const began = performance.now();
    await inventory.findVm(n % 3 === 0 ? misspelt(name, n) : name);
    took.push(performance.now() - began);
  }
  await inventory.close();
  return took;
}

/** 100,000 VMs, a ninth of them in another status at each refresh. */
function busyFleet(): Compute {
  const fleet = fleetService(projects, vmsPerProject);
  let reads = 0;
  return {
    ...fleet,
    projects: {
      ...fleet.projects,
      async vms(id) {
        // Answers of a service come one by one
        await sleep(20 * Math.random());
        const isChanged = (reads += 1) > projects;
        const vms = (await fleet.projects.vms(id)).map((vm, n) =>
          isChanged && n % 9 === 0 ? { ...vm, status: "ERROR" } : vm,
        );
        // Strings as they come from the network, not as they were put together here
        return JSON.parse(JSON.stringify(vms)) as typeof vms;
      },
    },
  };
}

const words = [
  "web",
  "api",
  "db",
  "cache",
  "worker",
  "queue",
  "gateway",
  "batch",
  "search",
  "auth",
];
const places = ["eu", "us", "ap", "test", "prod", "stage"];
const letters = "abcdefghijklmnopqrstuvwxyz";

const nameOf = (n: number) => `${words[n % 10]}-${places[n % 6]}-${n}`;
/** What isn't known is looked for by ID first. */
const unknown = () =>
  Promise.reject(new ComputeError("not-found", "GET", "there is none", { status: 404 }));

/** A service that holds a fleet in memory. */
function fleetService(count: number, size: number): Compute {
  const all: Project[] = Array.from({ length: count }, (_, n) => ({
    id: `project-${n.toString(16).padStart(12, "0")}`,
    name: `team-${nameOf(n)}`,
    type: "TEE_VM",
    status: "ACTIVE",
    region: places[n % 6] ?? "",
    createdAt: new Date(1.7e12 + n * 1000).toISOString(),
  }));
  const vms = (projectId: string): Vm[] => {
    const first = parseInt(projectId.slice(8), 16) * size;
    return Array.from({ length: size }, (_, at) => ({
      id: `vm-${(first + at).toString(16).padStart(24, "0")}`,
      projectId,
      name: nameOf(first + at),
      status: at % 9 === 0 ? "STOPPED" : "RUNNING",
      region: places[at % 6] ?? "",
      createdAt: new Date(1.7e12 + (first + at) * 997).toISOString(),
      specs: { cpu: 2 ** (at % 4), memory: 2 ** (at % 6), disk: 20 },
    }));
  };
  return {
    ...noService,
    projects: {
      ...noService.projects,
      listAll: () => Promise.resolve(all),
      get: unknown,
      vms: (id) => Promise.resolve(vms(id)),
    },
    vms: { ...noService.vms, get: unknown },
  };
}

function misspelt(name: string, n: number): string {
  const at = n % name.length;
  return name.slice(0, at) + (letters[n % 26] ?? "") + name.slice(at + (n % 2));
}
