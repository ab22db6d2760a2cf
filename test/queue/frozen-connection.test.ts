import { expect, it } from "vitest";
import { silentLog } from "../../src/log/log.ts";
import { createQueues } from "../../src/queue/queues.ts";
import { startWorkers } from "../../src/queue/workers.ts";
import { connectRedis } from "../../src/redis/redis.ts";
import { startProxy } from "../faults/stage/proxy.ts";
import { testRedis } from "../support/with-redis.ts";

/** ioredis gives up a silent connection after 12 s, and BullMQ's lock of what was taken in vain has to run out. */
const withinMs = 20_000;

it(
  "a worker whose connections are frozen, and not closed, takes jobs again by itself",
  async () => {
    await using shared = await testRedis();
    const { redis, key } = shared;
    await using line = await startProxy(Number(new URL(shared.url).port));
    const url = `redis://127.0.0.1:${line.port}`;
    const connection = await connectRedis(url, "worker", silentLog());
    const queues = createQueues(redis, key.prefix);
    const done: string[] = [];
    const workers = startWorkers({
      connection,
      prefix: key.prefix,
      heartbeatMs: 100,
      concurrency: 2,
      async advance(id) {
        done.push(id);
        return { is: "ended" };
      },
      bringForward: queues.bringForward,
      log: silentLog(),
    });
    workers.take();
    await queues.wake("before");
    await expect.poll(() => done).toEqual(["before"]);
    line.freeze();
    await queues.wake("meanwhile");
    await expect.poll(() => done, { timeout: withinMs }).toEqual(["before", "meanwhile"]);
    await queues.wake("after");
    await expect.poll(() => done).toContain("after");
    await workers.close(1_000);
    await queues.close();
    connection.disconnect();
  },
  withinMs + 10_000,
);
