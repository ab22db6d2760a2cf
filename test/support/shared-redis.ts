import type { TestProject } from "vitest/node";
import { startRedis } from "../../sandbox/ensure-redis.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The Redis that all tests of a run share; each uses a namespace of its own. */
    redisUrl: string;
  }
}

/** Vitest's global setup: one private Redis for the whole run. */
export default async function shareRedis(project: TestProject): Promise<() => Promise<void>> {
  const server = await startRedis();
  project.provide("redisUrl", server.url);
  return () => server.stop();
}
