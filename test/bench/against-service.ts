import { createCompute } from "../../src/compute/create-compute.ts";
import { createInventory } from "../../src/inventory/create-inventory.ts";
import { silentLog } from "../../src/log/log.ts";
import { connectRedis, createKeys } from "../../src/redis/redis.ts";

export interface Surroundings {
  url: string;
  apiKey: string;
  controlUrl: string;
  redisUrl: string;
  connections: number;
}

/** In a process that is measured: what reads the fleet of the service that `BENCH` names, and how many calls it made. */
export async function startAgainstService(namespace: string) {
  const told = JSON.parse(process.env["BENCH"] ?? "{}") as Surroundings & Record<string, unknown>;
  const { url: baseUrl, apiKey, redisUrl, connections } = told;
  const log = silentLog();
  const redis = await connectRedis(redisUrl, "commands", log);
  const key = createKeys(namespace);
  let calls = 0;
  const onCall = () => (calls += 1);
  const compute = createCompute({ baseUrl, apiKey, timeoutMs: 15_000, connections, onCall });
  const inventory = createInventory({
    redis,
    key,
    compute,
    log,
    refreshMs: 3_600_000,
    concurrency: connections,
  });
  return {
    told,
    log,
    redis,
    key,
    compute,
    inventory,
    /** Since it was last asked. */
    callsMade() {
      const made = calls;
      calls = 0;
      return made;
    },
    async close() {
      await Promise.all([inventory.close(), compute.close()]);
      redis.disconnect();
    },
  };
}
