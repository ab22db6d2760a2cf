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
    const { vms, resolveP99Ms, suggestP99Ms, rssGrowthMb, ofOneTeam } = looked.told;
    const seen = `${of(vms)} by somebody of one of ${ofOneTeam.teams} teams`;
    return [
      { name: `finding one ${of(vms)} by name, p99`, value: resolveP99Ms, unit: "ms", bound: 10 },
      { name: `suggesting ${of(vms)}, p99`, value: suggestP99Ms, unit: "ms", bound: 10 },
      { name: `memory for the names ${of(vms)}`, value: rssGrowthMb, unit: "MB", bound: 220 },
      { name: `finding one ${seen}, p99`, value: ofOneTeam.resolveP99Ms, unit: "ms", bound: 5 },
      { name: `suggesting ${seen}, p99`, value: ofOneTeam.suggestP99Ms, unit: "ms", bound: 5 },
      {
        name: `memory for the views of ${ofOneTeam.teams} teams, all in use`,
        value: ofOneTeam.heapGrowthMb,
        unit: "MB",
        bound: 150,
      },
    ];
  } finally {
    redis.disconnect();
  }
}

const of = (vms: number) => `of ${vms.toLocaleString("en")} VMs`;
