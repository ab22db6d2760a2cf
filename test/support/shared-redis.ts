import { mkdtemp, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TestProject } from "vitest/node";
import { checkSounds } from "./same-sounding.ts";
import { startRedis } from "../../sandbox/ensure-redis.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The Redis that all tests of a run share; each uses a namespace of its own. */
    redisUrl: string;
  }
}

/** Vitest's global setup: one private Redis for the whole run. */
export default async function shareRedis(project: TestProject): Promise<() => Promise<void>> {
  const dir = await mkdtemp(path.join(await quickFolder(), "gatehouse-redis-"));
  const server = await startRedis({ dir });
  project.provide("redisUrl", server.url);
  return async () => {
    const problem = await checkSounds(server.url).catch((error: unknown) => error);
    await server.stop();
    await rm(dir, { recursive: true, force: true });
    if (problem !== undefined) throw problem;
  };
}

const memory = "/dev/shm";
const enoughBytes = 4 * 1024 ** 3;

/** In memory where there is room: a disk that is slow for a second makes every command of every test late. */
async function quickFolder(): Promise<string> {
  const free = await statfs(memory).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  );
  return free >= enoughBytes ? memory : tmpdir();
}
