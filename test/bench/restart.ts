import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { startWorld, type World } from "../../sandbox/world.ts";
import type { Figure } from "./figure.ts";
import { startGatehouse } from "./process.ts";
import { beyond, watchRedis } from "./redis-calls.ts";

const policy = `access: { operate: ["S01ONCALL"] }
limits: { requestsPerMinute: 10000 }
sharedChannels: [C07VENDOR]
`;
const settleMs = 300;
const idleMs = 10_000;
/** Edits, seals, and what is no longer kept of a request that was told. */
const trailMs = 5_000;
const counted = 3;
/** Of each channel. */
const kept = 15;
const channels = ["C01OPS", "C02STATUS", "C07VENDOR"] as const;

/** What one restart costs the service, Slack and Redis, counted from the command to its result. */
export async function measureRestart(): Promise<readonly Figure[]> {
  await using world = await startWorld({
    roles: [],
    policy,
    compute: { world: { projects: 4, vmsPerProject: 40 }, transitionMs: settleMs },
    slack: { rateLimits: "off" },
  });
  await using programs = new AsyncDisposableStack();
  programs.use(await startGatehouse(world));
  const restart = restarter(world);
  await restart(1); // names are read, and code is warm
  await sleep(3_000);
  world.compute.forget();
  world.slack.forgetCalls();
  await restart(1);
  await sleep(1_000); // the card's last edit
  const calls = world.compute.calls();
  const reads = calls.filter(({ method, path }) => method === "GET" && !path.endsWith("/projects"));
  const slack = world.slack.callCounts();
  const said = (slack["chat.postMessage"] ?? 0) + (slack["chat.update"] ?? 0);
  const posts = world.compute.writes().length;
  const asked = await redisCalls(world, restart);
  const bytes = await bytesKept(world, restart);
  return [
    {
      name: "one restart: POSTs to the service",
      value: posts,
      unit: "",
      bound: 1,
    },
    { name: "one restart: reads of the service", value: reads.length, unit: "" },
    { name: "one restart: messages and edits in Slack", value: said, unit: "", bound: 3 },
    {
      name: `one restart: scripts and commands asked of Redis, beyond those of idleness, mean of ${counted}`,
      value: asked,
      unit: "",
      bound: 100,
    },
    {
      name: `a finished restart: what Redis keeps of it for longer than a day, beyond idleness, mean of ${kept * channels.length}`,
      value: bytes.all / 1000,
      unit: "kB",
      bound: 10,
    },
    { name: "… of that its records of the audit trail", value: bytes.trail / 1000, unit: "kB" },
  ];
}

/** Restarts the next so many VMs in each channel, one when the other was told: together they would share a card. */
function restarter(world: World) {
  const olivia = world.slack.person("olivia");
  const vms = Object.values(world.compute.truth().vms)
    .filter(({ status }) => status === "RUNNING")
    .map(({ name }) => name)
    .values();
  const results = () =>
    world.slack
      .messages()
      .filter(({ blocks }) => JSON.stringify(blocks).includes(`<@${olivia.id}>`)).length;
  return async (count: number, where: readonly string[] = ["ops"]) => {
    for (let n = 0; n < count; n += 1) {
      const told = results() + where.length;
      await Promise.all(
        where.map((channel) => olivia.types(channel, `/vm restart ${vms.next().value}`)),
      );
      await world.slack.until(() => results() >= told, 60_000);
    }
  };
}

type Restarter = ReturnType<typeof restarter>;

async function redisCalls(world: World, restart: Restarter): Promise<number> {
  using calls = await watchRedis(world.redisUrl);
  await sleep(idleMs);
  const idle = new Map(calls.counts());
  let sum = 0;
  for (let n = 0; n < counted; n += 1) {
    calls.forget();
    const began = performance.now();
    await restart(1);
    await sleep(1_000); // the card's last edit, the seal
    sum += beyond(calls.counts(), performance.now() - began, idle, idleMs);
  }
  return sum / counted;
}

interface StoredInteraction {
  all: number;
  trail: number;
}

/**
 * Of all keys and streams, but not of those that expire within a day, what is known of the fleet, and the queue's events, which are as
 * many after a thousand requests.
 */
async function bytesKept(world: World, restart: Restarter): Promise<StoredInteraction> {
  const redis = new Redis(world.redisUrl);
  try {
    await sleep(trailMs);
    const first = await keptBytes(redis);
    await sleep(idleMs);
    const before = await keptBytes(redis);
    const began = performance.now();
    await restart(kept, channels);
    await sleep(trailMs);
    const idles = (performance.now() - began) / idleMs;
    const after = await keptBytes(redis);
    const grown = (of: keyof StoredInteraction) =>
      (after[of] - before[of] - (before[of] - first[of]) * idles) / (kept * channels.length);
    return { all: grown("all"), trail: grown("trail") };
  } finally {
    redis.disconnect();
  }
}

const dayMs = 24 * 3600_000;

async function keptBytes(redis: Redis): Promise<StoredInteraction> {
  const bytes = { all: 0, trail: 0 };
  for (const key of await redis.keys("*")) {
    const expiresInMs = await redis.pttl(key);
    const isCommon = /:(seen-statuses|events)$/.test(key);
    if (isCommon || (expiresInMs >= 0 && expiresInMs <= dayMs)) continue;
    const taken = Number(await redis.memory("USAGE", key, "SAMPLES", 0));
    bytes.all += taken;
    if (key.includes(":audit")) bytes.trail += taken;
  }
  return bytes;
}
