import { createCompute } from "../../src/compute/create-compute.ts";
import { silentLog } from "../../src/log.ts";
import { connectRedis, createKeys } from "../../src/redis.ts";
import { startRedis } from "../../src/sandbox/ensure-redis.ts";
import { startSandboxCompute } from "../../src/sandbox/compute/start-sandbox-compute.ts";
import type { Figure } from "./figure.ts";
import { fillInventory, type LookupFigures, measureRefresh } from "./inventory.ts";
import { startProgram } from "./process.ts";

const projects = 200;
const latencyMs = 40;
const connections = 16;

/** 100,000 VMs in Redis: looking names up, the memory that takes, and what a refresh costs. */
export async function measureInventory(): Promise<readonly Figure[]> {
  await using server = await startRedis();
  const redis = await connectRedis(server.url, "commands", silentLog());
  try {
    await fillInventory({ redis, key: createKeys("bench") });
    await using looked = await startProgram(
      ["test/bench/look-up.ts", server.url],
      {},
      (line): LookupFigures | undefined => (line.startsWith("{") ? JSON.parse(line) : undefined),
    );
    const { vms, resolveP99Ms, suggestP99Ms, rssGrowthMb } = looked.told;
    const of = `of ${vms.toLocaleString("en")} VMs`;
    return [
      { name: `finding one ${of} by name, p99`, value: resolveP99Ms, unit: "ms", bound: 5 },
      { name: `suggesting ${of}, p99`, value: suggestP99Ms, unit: "ms", bound: 5 },
      { name: `memory for the names ${of}`, value: rssGrowthMb, unit: "MB", bound: 150 },
      await refreshFigure(redis),
    ];
  } finally {
    redis.disconnect();
  }
}

async function refreshFigure(redis: Parameters<typeof measureRefresh>[0]["redis"]) {
  await using service = await startSandboxCompute({
    world: { projects, vmsPerProject: 20 },
    latencyMs,
  });
  const compute = createCompute({
    baseUrl: service.url,
    apiKey: service.apiKey,
    timeoutMs: 15_000,
    onCall: () => undefined,
  });
  try {
    const refresh = await measureRefresh({
      redis,
      key: createKeys("refresh"),
      compute,
      connections,
      latencyMs,
      calls: () => service.calls().length,
    });
    return {
      name: `refreshing ${projects} projects over ${connections} connections, against latency × calls ÷ connections`,
      value: refresh.ratio,
      unit: "×",
      bound: 1.5,
      ratio: { to: "the same calls without an inventory", times: refresh.tookMs / refresh.bareMs },
    } satisfies Figure;
  } finally {
    await compute.close();
  }
}
