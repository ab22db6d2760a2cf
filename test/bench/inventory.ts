import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Compute, type Project, type Vm, ComputeError } from "../../src/compute/compute.ts";
import { parsePolicy, type Policy } from "../../src/config/policy-file.ts";
import { createInventory } from "../../src/inventory/create-inventory.ts";
import type { Inventory, KnownProject } from "../../src/inventory/inventory.ts";
import { silentLog } from "../../src/log/log.ts";
import { scopeOfPerson } from "../../src/policy/access.ts";
import type { RedisClient } from "../../src/redis/redis.ts";
import type { Person } from "../../src/registry/invocation.ts";

export interface Place {
  redis: RedisClient;
  key: (...parts: string[]) => string;
}

export interface LookupFigures {
  vms: number;
  projects: number;
  resolveP99Ms: number;
  suggestP99Ms: number;
  /** Of a process that reads the inventory from Redis. */
  rssGrowthMb: number;
  loadMs: number;
  /** Where 200 teams have the projects among them, for somebody of one. */
  ofOneTeam: { teams: number; resolveP99Ms: number; suggestP99Ms: number; heapGrowthMb: number };
}

const teams = 200;

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
const never = () => Promise.reject(new Error("not part of this bench"));
/** What isn't known is looked for by ID first. */
const unknown = () =>
  Promise.reject(new ComputeError("not-found", "GET", "there is none", { status: 404 }));

/** A service that holds a fleet in memory and answers after `latencyMs`. */
export function fleetService(projects: number, vmsPerProject: number, latencyMs = 0): Compute {
  const pause = () => new Promise((resolve) => setTimeout(resolve, latencyMs));
  const all: Project[] = Array.from({ length: projects }, (_, n) => ({
    id: `project-${n.toString(16).padStart(12, "0")}`,
    name: `team-${nameOf(n)}`,
    type: "TEE_VM",
    status: "ACTIVE",
    region: places[n % 6] ?? "",
    createdAt: new Date(1.7e12 + n * 1000).toISOString(),
  }));
  const vms = (projectId: string): Vm[] => {
    const first = parseInt(projectId.slice(8), 16) * vmsPerProject;
    return Array.from({ length: vmsPerProject }, (_, at) => ({
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
    projects: {
      listAll: () => pause().then(() => all),
      get: unknown,
      vms: (id) => pause().then(() => vms(id)),
      create: never,
      update: never,
      delete: never,
    },
    vms: {
      get: unknown,
      metrics: never,
      attestation: never,
      start: never,
      stop: never,
      restart: never,
      resize: never,
      snapshot: never,
      restore: never,
      console: never,
    },
    onlyWhile: () => {
      throw new Error("it changes nothing");
    },
    close: () => Promise.resolve(),
  };
}

/** Puts a fleet into Redis, for `measureLookups` in another process: the memory of both would count otherwise. */
export async function fillInventory(
  at: Place,
  projects = 5_000,
  vmsPerProject = 20,
): Promise<number> {
  const started = performance.now();
  const compute = fleetService(projects, vmsPerProject);
  const inventory = createInventory({ ...at, compute, log: silentLog(), refreshMs: 3_600_000 });
  await inventory.refresh();
  await inventory.close();
  return performance.now() - started;
}

/** Reads the inventory that is in Redis, and times 2,000 lookups and 2,000 suggestions, a third of them misspelt. */
export async function measureLookups(at: Place): Promise<LookupFigures> {
  const compute = fleetService(0, 0);
  const before = memory();
  const started = performance.now();
  const inventory = createInventory({ ...at, compute, log: silentLog(), refreshMs: 3_600_000 });
  const vms = await inventory.vms();
  const loadMs = performance.now() - started;
  const names = Array.from({ length: 2_000 }, (_, n) => vms[(n * 7919) % vms.length]?.name ?? "");
  const rssGrowthMb = (memory() - before) / 2 ** 20;
  const resolve = await times(names, (name, n) =>
    inventory.findVm(n % 3 === 0 ? misspelt(name, n) : name),
  );
  const suggest = await times(names, (name, n) => inventory.suggestVms(typed(name, n)));
  const { vms: count, projects } = await inventory.state();
  const ofOneTeam = await measureTeams(inventory, names);
  await inventory.close();
  return {
    ofOneTeam,
    vms: count,
    projects,
    resolveP99Ms: p99(resolve),
    suggestP99Ms: p99(suggest),
    rssGrowthMb,
    loadMs,
  };
}

/** 1,000 lookups and 1,000 suggestions each by somebody of another team, half of them for what other teams have. */
async function measureTeams(inventory: Inventory, names: readonly string[]) {
  const policy = policyOfTeams(await inventory.projects());
  const person = (team: number): Person => ({
    id: `U0TEAM${team}`,
    teamId: "T0",
    name: "somebody",
    kind: "member",
    groups: [],
  });
  const views = Array.from({ length: teams }, (_, team) =>
    inventory.seenIn(async () => scopeOfPerson(policy, person(team), "T0")),
  );
  const before = memory("heapUsed");
  const own = await Promise.all(views.map((view) => view.vms()));
  const heapGrowthMb = (memory("heapUsed") - before) / 2 ** 20;
  const asked = names.slice(0, 1_000).map((name, n) => {
    const theirs = own[n % teams] ?? [];
    return n % 2 === 0 ? (theirs[(n * 7919) % theirs.length]?.name ?? "") : name;
  });
  const view = (n: number) => views[n % teams] ?? inventory;
  const resolve = await times(asked, (name, n) =>
    view(n).findVm(n % 3 === 0 ? misspelt(name, n) : name),
  );
  const suggest = await times(asked, (name, n) => view(n).suggestVms(typed(name, n)));
  return { teams, resolveP99Ms: p99(resolve), suggestP99Ms: p99(suggest), heapGrowthMb };
}

/** Projects go to teams one by one: half of each team's by ID, the others by name. */
function policyOfTeams(projects: readonly KnownProject[]): Policy {
  const claimed = Map.groupBy(
    projects.map(({ id, name }, n) => ({ team: n % teams, entry: n % 2 === 0 ? id : name })),
    ({ team }) => team,
  );
  const file = [...claimed].map(([team, all]) => [
    `team-${team}`,
    { projects: all.map(({ entry }) => entry), operate: [`U0TEAM${team}`] },
  ]);
  const read = parsePolicy(
    JSON.stringify({ teams: Object.fromEntries(file) }),
    "gatehouse.yml",
    [],
  );
  if ("problems" in read) throw new Error(read.problems.join("\n"));
  return read.policy;
}

function memory(of: "rss" | "heapUsed" = "rss"): number {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect === "function") for (let round = 0; round < 3; round++) collect();
  return process.memoryUsage()[of];
}

async function times(
  names: readonly string[],
  work: (name: string, n: number) => Promise<unknown>,
): Promise<number[]> {
  const took: number[] = [];
  for (const [n, name] of names.entries()) {
    const started = performance.now();
    // oxlint-disable-next-line no-await-in-loop -- timed one by one
    await work(name, n);
    took.push(performance.now() - started);
  }
  return took;
}

function misspelt(name: string, n: number): string {
  const at = n % name.length;
  return name.slice(0, at) + (letters[n % 26] ?? "") + name.slice(at + (n % 2));
}

/** What a person has typed so far: a beginning, a middle, a slip, a project and a part. */
function typed(name: string, n: number): string {
  if (n % 4 === 0) return name.slice(0, 2 + (n % 5));
  if (n % 4 === 1) return name.slice(3, 9);
  if (n % 4 === 2) return misspelt(name, n);
  return `team-${name.slice(0, 4)}/${name.slice(0, 2)}`;
}

function p99(took: readonly number[]): number {
  return took.toSorted((a, b) => a - b)[Math.floor(took.length * 0.99)] ?? 0;
}
