import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { buildWorld, type World } from "../../demo/world.ts";
import { Trail } from "../../src/audit/trail.ts";
import { createKeys } from "../../src/redis/redis.ts";
import { allHealthy, engineProblem, type Shipped, unpackShipped } from "../support/shipped.ts";
import type { Figure, Measured } from "./figure.ts";
import { imageOptions } from "./process.ts";
import { running } from "./told.ts";
import { fillYear, quiet } from "./year.ts";

const changesADay = 500;
/** Requests that are really made: a tenth of a year's, unless REQUESTS says otherwise. */
const count = Number(process.env["REQUESTS"] ?? (365 * changesADay) / 10);
const parts = 10;
const openAtOnce = 100;
const channels = ["ops", "status"];
const policy = `access: { view: ["*"], operate: ["S01ONCALL", "S02LEADS"], administer: ["U0ADA"] }
audit: { channel: C03AUDIT }
limits: { requestsPerMinute: 10000 }
`;
const key = createKeys();
const mb = 1_000_000;
/** What docs/operate.md says to set for so many changes a day and an archive a year. */
const redisMb = Math.ceil((2 * changesADay * (90 * 3 + 365 * 2.2)) / 1_000 + 50);

const startSandboxes = () =>
  buildWorld({
    roles: [],
    compute: { world: { projects: 30, vmsPerProject: 40 }, transitionMs: 100 },
    // What counts is how many there were, not how fast
    slack: { rateLimits: "off", app: { ackTimeoutMs: 90_000 } },
  });

async function start(shipped: Shipped, world: World) {
  const problem = await engineProblem();
  if (problem !== undefined) throw new Error(problem);
  await shipped.compose(["build"]);
  await up(shipped, world);
  return new Redis(shipped.redisUrl);
}

async function up({ compose, health }: Shipped, world: World): Promise<void> {
  await compose(["up", "--detach"]);
  while ((await health()).join() !== allHealthy.join()) await sleep(1_000);
  await world.slack.connected();
}

/** A tenth of a year's requests through the containers of compose.yaml: how large everything gets. */
export async function measureShipped(): Promise<readonly Figure[]> {
  await using world = await startSandboxes();
  await using shipped = await unpackShipped(world, () => policy);
  using redis = disposable(await start(shipped, world));
  const sizes = [await sizeOf(shipped, redis)];
  let made = 0;
  for (let part = 1; part <= parts; part += 1) {
    made = await request(world, redis, made, Math.round((count * part) / parts));
    sizes.push(await sizeOf(shipped, redis));
    process.stderr.write(`${made}: ${JSON.stringify(sizes.at(-1))}\n`);
  }
  const shown = [0, 1, parts / 2, parts].map((part) => sizes[part] ?? {});
  return Object.keys(shown[0] ?? {}).map((name) => ({
    name: `${name}: before, after a tenth, half, and all of ${count} requests`,
    values: shown.map((size): Measured => ({ value: size[name] ?? 0, unit: "MB" })),
  }));
}

/** Keeps some open until so many were made, and resolves with their number once none is open. */
async function request(world: World, redis: Redis, made: number, most: number): Promise<number> {
  const vms = running(world);
  const people = ["olivia", "amir"].map((name) => world.slack.person(name));
  const open = () => redis.zcard(key("requests", "open"));
  const channelOf = (n: number) => channels[n % channels.length] ?? "";
  let next = made;
  while (next < most) {
    const free = Math.min(openAtOnce - (await open()), most - next);
    const typed = Array.from({ length: Math.max(0, free) }, (_, n) => next + n);
    await Promise.all(
      typed.map(async (n) => {
        const person = people[n % people.length];
        const outcome = await person?.types(channelOf(n), `/vm restart ${vms[n % vms.length]}`);
        if (outcome?.acked !== true) throw new Error(`request ${n}: ${outcome?.error}`);
      }),
    );
    next += typed.length;
    await sleep(100);
  }
  while ((await open()) > 0) await sleep(500);
  await quiet(world);
  return next;
}

const disposable = (redis: Redis) =>
  Object.assign(redis, { [Symbol.dispose]: () => redis.disconnect() });

/** How large everything is, by name, in MB. */
async function sizeOf(shipped: Shipped, redis: Redis): Promise<Record<string, number>> {
  const { compose } = shipped;
  const inside = async (service: string, script: string) =>
    Number.parseInt(await compose(["exec", "-T", service, "sh", "-c", script]), 10);
  const bytesOf = (service: string, folder: string) =>
    inside(service, `du -sb ${folder} | cut -f1`);
  const memory = /^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1];
  const sizes: Record<string, number> = {
    "Redis memory": Number(memory),
    "Redis append-only directory": await bytesOf("redis", "/data/appendonlydir"),
  };
  for (const service of Object.keys(shipped.ports)) {
    sizes[`${service}: memory`] = 1024 * (await inside(service, statusScript("VmRSS")));
    sizes[`${service}: most memory`] = 1024 * (await inside(service, statusScript("VmHWM")));
    sizes[`${service}: DATA_DIR`] = await bytesOf(service, "/data");
    const log = await compose(["logs", "--no-log-prefix", "--no-color", service]);
    sizes[`${service}: log that Docker keeps`] = Buffer.byteLength(log);
  }
  for (const name of Object.keys(sizes)) sizes[name] = (sizes[name] ?? 0) / mb;
  return sizes;
}

const statusScript = (field: string) => `sed -n 's/^${field}:[^0-9]*//p' /proc/1/status`;

/** Prints what this process took at most, in kB, and what the cgroup did, with the files that the kernel keeps of it. */
const peakModule = `data:text/javascript,${encodeURIComponent(`
  import { existsSync, readFileSync } from "node:fs";
  const places = ["memory.peak", "memory/memory.max_usage_in_bytes"].map((name) => "/sys/fs/cgroup/" + name);
  process.on("exit", (code) => {
    const cgroup = readFileSync(places.find((place) => existsSync(place)), "utf8").trim();
    console.log("peaks", process.resourceUsage().maxRSS, cgroup, code);
  });`)}`;

/** What commands take with that year in Redis, each in a container of its own or in processes that have just started. */
export async function measureShippedYear(): Promise<readonly Figure[]> {
  await using world = await startSandboxes();
  await using shipped = await unpackShipped(world, () => policy, { redisMb });
  const { compose } = shipped;
  using redis = disposable(await start(shipped, world));
  await request(world, redis, 0, 1);
  const [id = ""] = await redis.zrevrange(key("requests", "recent"), 0, 0);
  // The heads of the trail that is filled in are none that these processes have seen
  const processes = Object.keys(shipped.ports);
  await compose(["stop", ...processes]);
  for (const service of processes)
    await compose([
      ..."run --rm --no-deps -T --entrypoint sh".split(" "),
      service,
      "-c",
      "rm -rf /data/*",
    ]);
  await fillYear({ redis, key, id, changesADay });
  await up(shipped, world);
  const trail = new Trail(redis, key);
  while ((await trail.records({ after: (await trail.head())?.id, most: 1 })).length > 0)
    await sleep(1_000);
  const figures: Figure[] = [];
  const add = (name: string, values: Measured[]) => {
    figures.push({ name, values });
    process.stderr.write(`${name}: ${JSON.stringify(values)}\n`);
  };
  for (const [name, value] of Object.entries(await sizeOf(shipped, redis)))
    add(`a year of ${changesADay} restarts a day: ${name}`, [{ value, unit: "MB" }]);

  const ada = world.slack.person("ada");
  const reads: [name: string, act: () => Promise<unknown>][] = [
    "/gatehouse night",
    "/gatehouse night --file 6d",
    "/gatehouse audit",
    "/gatehouse audit web-2",
    "/gatehouse audit export",
    "/gatehouse audit verify",
    "/gatehouse digest now",
    "/gatehouse jobs",
  ].map((words) => [words, () => ada.types("ops", words)]);
  reads.unshift(["nothing", async () => undefined]);
  reads.push(["the Home tab", () => ada.opensHome()]);
  for (const [name, act] of reads) {
    await compose(["restart", ...processes]);
    await up(shipped, world);
    await quiet(world);
    await act();
    await quiet(world);
    const peaks: Measured[] = [];
    for (const service of processes) {
      const output = await compose(["exec", "-T", service, "sh", "-c", statusScript("VmHWM")]);
      peaks.push({ value: (1024 * Number.parseInt(output, 10)) / mb, unit: "MB" });
    }
    add(`${name}: most memory of ${processes.join(", ")}`, peaks);
  }
  const before = new Date(Date.now() - 91 * 86_400_000).toISOString().slice(0, 10);
  for (const words of [
    "audit verify",
    "audit export /data/trail.json",
    `audit archive /data/archive.json --before ${before} --who ada --why yearly`,
    "audit verify",
  ]) {
    const began = performance.now();
    const output = await compose([
      ..."run --rm --no-deps -T --entrypoint node gateway".split(" "),
      ...imageOptions(),
      `--import=${peakModule}`,
      "gatehouse.mjs",
      ...words.split(" "),
    ]);
    const [rss = 0, cgroup = 0, code] = (/^peaks (\d+) (\d+) (\d+)$/m.exec(output) ?? [])
      .slice(1)
      .map(Number);
    const size = await compose(["exec", "-T", "gateway", "sh", "-c", "ls -l /data"]);
    process.stderr.write(`${output.slice(-1_000)}\n${size}\n`);
    add(
      `${words}, in a container of its own: most memory, and with files that the kernel may drop; time, exit code`,
      [
        { value: (rss * 1024) / mb, unit: "MB" },
        { value: cgroup / mb, unit: "MB" },
        { value: (performance.now() - began) / 1000, unit: "s" },
        { value: code ?? -1, unit: "", most: 0 },
      ],
    );
  }
  return figures;
}
