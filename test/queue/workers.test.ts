import { expect, it, onTestFinished, vi } from "vitest";
import { silentLog } from "../../src/log/log.ts";
import { createQueues } from "../../src/queue/queues.ts";
import { startWorkers } from "../../src/queue/workers.ts";
import { connectRedis } from "../../src/redis/redis.ts";
import { testRedis } from "../support/with-redis.ts";

it("a worker that stops as its clock is hours ahead leaves what it put off to the others at once", async () => {
  await using shared = await testRedis();
  const { redis, key, url } = shared;
  const queues = createQueues(redis, key.prefix);
  async function worker(advance: Parameters<typeof startWorkers>[0]["advance"]) {
    const connection = await connectRedis(url, "worker", silentLog());
    const its = startWorkers({
      connection,
      prefix: key.prefix,
      heartbeatMs: 100,
      concurrency: 2,
      advance,
      bringForward: queues.bringForward,
      log: silentLog(),
    });
    its.take();
    return {
      ...its,
      async [Symbol.asyncDispose]() {
        await its.close(1_000);
        connection.disconnect();
      },
    };
  }
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const slow = Promise.withResolvers<void>();
  await using ahead = await worker(async (id) => {
    if (id === "slow") await slow.promise;
    return { is: "wait", ms: 50 };
  });
  vi.setSystemTime(Date.now() + 3 * 3_600_000);
  await queues.wake("slow");
  await queues.wake("late");
  const counts = async () => (await queues.depths()).find(({ queue }) => queue === "requests");
  await expect.poll(counts).toMatchObject({ active: 1, delayed: 1 });
  await ahead.hold();
  slow.resolve();
  await expect.poll(counts).toMatchObject({ active: 0, delayed: 0, waiting: 2 });
  vi.useRealTimers();
  const done: string[] = [];
  await using right = await worker(async (id) => {
    done.push(id);
    return { is: "ended" };
  });
  await expect.poll(() => done.toSorted()).toEqual(["late", "slow"]);
  await right.close(1_000);
  await queues.close();
});
