import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { buildWorld, type World } from "../../demo/world.ts";
import type { Figure } from "./figure.ts";
import { startGatehouse } from "./process.ts";

const policy = `access: { operate: ["S01ONCALL"] }
limits: { requestsPerMinute: 10000 }
sharedChannels: [C07VENDOR]
`;
const settleMs = 300;
const idleMs = 10_000;
/** Edits, seals, and what is no longer kept of a request that was told. */
const trailMs = 5_000;
/** Of each channel. */
const kept = 15;
const channels = ["C01OPS", "C02STATUS", "C07VENDOR"] as const;

/** What one restart costs the service and Slack, counted from the command to its result, and what Redis keeps of it. */
export async function measureRestart(): Promise<readonly Figure[]> {
  await using world = await buildWorld({
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
  const posts = world.compute.writes().length;
  const calls = world.slack.callCounts();
  const said = (calls["chat.postMessage"] ?? 0) + (calls["chat.update"] ?? 0);
  return [
    {
      name: "one restart: POSTs to the service; messages and edits in Slack",
      values: [
        { value: posts, unit: "", most: 1 },
        { value: said, unit: "", most: 3 },
      ],
    },
    {
      name: "one restart: kept in Redis, with its records in the audit trail",
      values: [{ value: (await bytesKept(world, restart)) / 1000, unit: "kB", most: 10 }],
    },
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
      await world.slack.until(() => results() >= told);
    }
  };
}

type Restarter = ReturnType<typeof restarter>;

/**
 * Of all keys and streams, but not of those that expire within a day, what is known of the fleet, and the queue's events, which are as
 * many after a thousand requests.
 */
async function bytesKept(world: World, restart: Restarter): Promise<number> {
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
    return (after - before - (before - first) * idles) / (kept * channels.length);
  } finally {
    redis.disconnect();
  }
}

const dayMs = 24 * 3600_000;

async function keptBytes(redis: Redis): Promise<number> {
  let bytes = 0;
  for (const key of await redis.keys("*")) {
    const expiresInMs = await redis.pttl(key);
    const isCommon = /:(seen-statuses|events)$/.test(key);
    if (isCommon || (expiresInMs >= 0 && expiresInMs <= dayMs)) continue;
    bytes += Number(await redis.memory("USAGE", key, "SAMPLES", 0));
  }
  return bytes;
}
