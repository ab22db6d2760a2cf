import { silentLog } from "../../src/log/log.ts";
import { createKeys, connectRedis } from "../../src/redis/redis.ts";
import { startRedis } from "../../sandbox/ensure-redis.ts";
import type { Figure } from "./figure.ts";
import { fillInventory, type LookupFigures } from "./inventory.ts";
import { startProgram } from "./process.ts";

/** 100,000 VMs in Redis: looking names up, and the memory that takes. */
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
    ];
  } finally {
    redis.disconnect();
  }
}
