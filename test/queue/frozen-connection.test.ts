import { it } from "vitest";
import { silentLog } from "../../src/log/log.ts";
import { createQueues } from "../../src/queue/queues.ts";
import { startPendingWork } from "../../src/queue/pending-work.ts";
import { createPending } from "../../src/redis/pending.ts";
import { startProxy } from "../faults/stage/proxy.ts";
import { connectImpatiently, testRedis } from "../support/with-redis.ts";
import { until } from "../support/until.ts";

it("a worker whose connections are frozen, and not closed, takes jobs again by itself", async () => {
  await using shared = await testRedis();
  const { redis, key } = shared;
  await using line = await startProxy(Number(new URL(shared.url).port));
  const url = `redis://127.0.0.1:${line.port}`;
  // In production it gives up a silent connection after 12 s
  const connection = await connectImpatiently(url, "worker", { part: 0.2 });
  const queues = createQueues(redis, key.prefix);
  queues.assign("step", queues.requests);
  const done: string[] = [];
  const steps = createPending(redis, key, "step");
  steps.onWake((id) => void queues.wake("step", id));
  const work = {
    // Its own connection isn't frozen: what is tested is BullMQ's
    pending: steps,
    async handle(id: string) {
      done.push(id);
      await steps.remove(id);
      return undefined;
    },
  };
  const workers = startPendingWork([work], {
    queue: queues.requests,
    wake: queues.wake,
    connection,
    prefix: key.prefix,
    heartbeatMs: 100,
    concurrency: 2,
    log: silentLog(),
  });
  workers.take();
  await steps.later("before", 0);
  await until(() => done).toEqual(["before"]);
  line.freeze();
  await steps.later("meanwhile", 0);
  await until(() => done).toEqual(["before", "meanwhile"]);
  await steps.later("after", 0);
  await until(() => done).toContain("after");
  await workers.close(1_000);
  await queues.close();
  connection.disconnect();
});
