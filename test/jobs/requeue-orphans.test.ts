import { describe, expect, it, vi } from "vitest";
import { startHeartbeat } from "../../src/jobs/liveness.ts";
import { createQueues, type Jobs, startWorkers } from "../../src/jobs/queues.ts";
import { silentLog } from "../../src/log/log.ts";
import { connectRedis } from "../../src/redis/redis.ts";
import { testRedis } from "../support/with-redis.ts";

const log = silentLog();

/** A worker whose step never ends, and the queue it took its job from. */
async function stuckWorker() {
  const { redis, key, url, [Symbol.asyncDispose]: leave } = await testRedis();
  const queues = createQueues(redis, key.prefix);
  const connections = await Promise.all([1, 2].map(() => connectRedis(url, "worker", log)));
  const taken: string[] = [];
  const stuck = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  const workers: Jobs[] = [];
  const work = (at: number, advance: (id: string) => Promise<{ is: "ended" }>) => {
    const [one, two] = connections;
    const connection = at === 0 ? one : two;
    if (!connection) throw new Error("no connection");
    const options = {
      concurrency: 1,
      lockMs: 60_000,
      lookMs: 1_000,
      wake: async () => undefined,
      heard: () => undefined,
      log,
    };
    const jobs = startWorkers({ ...options, connection, prefix: key.prefix, advance });
    workers.push(jobs);
    jobs.begin();
    return jobs;
  };
  const first = work(0, async (id) => {
    taken.push(`first ${id}`);
    stuck.resolve();
    await over.promise;
    return { is: "ended" };
  });
  await queues.wake("r-1");
  await stuck.promise;
  return {
    redis,
    key,
    queues,
    taken,
    first,
    second: (done: () => void) =>
      work(1, async (id) => {
        taken.push(`second ${id}`);
        done();
        return { is: "ended" };
      }),
    async [Symbol.asyncDispose]() {
      over.resolve();
      await Promise.all(workers.map((jobs) => jobs.close(2000)));
      await queues.close();
      for (const connection of connections) connection.disconnect();
      await leave();
    },
  };
}

describe("what a worker had in hand", () => {
  it("is rung for anew as soon as its heart has stopped, long before the queue's own lock runs out", async () => {
    await using stuck = await stuckWorker();
    const { queues } = stuck;
    const isAlive = async (id: string) => !stuck.first.ids.includes(id);
    const { promise, resolve } = Promise.withResolvers<void>();
    stuck.second(resolve);
    expect(await queues.requeueOrphans(isAlive)).toBe(1);
    await promise;
    expect(stuck.taken).toEqual(["first r-1", "second r-1"]);
    // Both are over then: nothing is left in the queue
    await vi.waitFor(async () =>
      expect(await queues.counts()).toMatchObject({ waiting: 0, active: 0, delayed: 0 }),
    );
  });

  it("stays with it while its heart beats, and is rung for once when two look at the same time", async () => {
    await using stuck = await stuckWorker();
    const { redis, key, queues } = stuck;
    const heartbeat = await startHeartbeat({ redis, key, workerId: "w-1", beatMs: 10_000, log });
    await heartbeat.addHeartbeatIds(stuck.first.ids);
    expect(await queues.requeueOrphans(heartbeat.isAlive)).toBe(0);
    await heartbeat.close();
    const sums = await Promise.all([1, 2, 3].map(() => queues.requeueOrphans(heartbeat.isAlive)));
    expect(sums.reduce((sum, requeued) => sum + requeued)).toBe(1);
    expect(await queues.counts()).toMatchObject({ waiting: 1, active: 0 });
  });
});
