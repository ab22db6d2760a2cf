import { describe, expect, it, onTestFinished, vi } from "vitest";
import { silentLog } from "../../src/log/log.ts";
import { createQueues } from "../../src/queue/queues.ts";
import { type Schedule, requestSync, startSchedules } from "../../src/queue/schedules.ts";
import { connectRedis, createKeys } from "../../src/redis/redis.ts";
import { testRedis } from "../support/with-redis.ts";
import { until } from "../support/until.ts";

async function place() {
  const shared = await testRedis();
  onTestFinished(() => shared[Symbol.asyncDispose]());
  return { url: shared.url, namespace: shared.key.namespace };
}

/** One worker's side. What `wanted` has may change. */
async function worker(
  at: { url: string; namespace: string },
  wanted: { now: Schedule[]; isOld?: boolean },
) {
  const redis = await connectRedis(at.url, "commands", silentLog());
  const connection = await connectRedis(at.url, "worker", silentLog());
  const { prefix } = createKeys(at.namespace);
  const queues = createQueues(redis, prefix);
  const { schedules: queue } = queues;
  const running = startSchedules({
    queue,
    connection,
    prefix,
    heartbeatMs: 40,
    syncEveryMs: 60_000,
    schedules: async () => wanted.now,
    isCurrent: () => !wanted.isOld,
    log: silentLog(),
  });
  const dies = () => {
    // Its blocking read as well, which would take the sign of a job
    void running.close(0);
    redis.disconnect();
    connection.disconnect();
  };
  onTestFinished(async () => {
    await running.close(100);
    await queues.close();
    dies();
  });
  const names = async () => (await queue.getJobSchedulers()).map(({ key }) => key).toSorted();
  const take = async () => {
    running.take();
    await running.sync();
  };
  return { ...running, take, redis, queue, names, dies };
}

const counting = (name: string, everyMs: number) => {
  const counted = { times: 0 };
  const run = async () => void (counted.times += 1);
  return Object.assign(counted, { schedule: { name, repeat: { every: everyMs }, run } });
};

/** An interval whose next time doesn't come while a test runs, although all of them are counted from 1970 (ms). */
const never = 100 * 86_400_000;

describe("a schedule", () => {
  it("runs at once and then each time in one of all workers, though all ask for it again and again", async () => {
    const at = await place();
    const [often, tick] = [counting("often", 100), counting("tick", never)];
    const all = [];
    for (let n = 0; n < 3; n++)
      all.push(await worker(at, { now: [often.schedule, tick.schedule] }));
    await Promise.all(all.map((one) => one.take()));
    await until(() => often.times).toBeGreaterThan(1);
    for (let times = 0; times < 5; times += 1) await Promise.all(all.map((one) => one.sync()));
    const { times } = often;
    await until(() => often.times).toBeGreaterThan(times + 2);
    expect(tick.times).toBe(1);
    expect(await all[0]?.names()).toEqual(["often", "tick"]);
  });

  it("is tried again soon after a failure", async () => {
    let times = 0;
    const run = async () => {
      times += 1;
      throw new Error("the service is away");
    };
    const failing = { name: "read", repeat: { every: 60_000 }, run, retryAfterMs: 50 };
    const one = await worker(await place(), { now: [failing] });
    await one.take();
    await until(() => times).toBeGreaterThan(3);
  });

  it("drops the retries of one that is slow and fails once its next time has come", async () => {
    const clock = Date.now.bind(Date);
    onTestFinished(() => void vi.restoreAllMocks());
    let times = 0;
    const run = async () => {
      times += 1;
      if (times > 1) return;
      // It takes until its next time has come twice
      vi.spyOn(Date, "now").mockImplementation(() => clock() + 2 * never);
      throw new Error("the service is away");
    };
    const failing = { name: "read", repeat: { every: never }, run, retryAfterMs: 50 };
    const one = await worker(await place(), { now: [failing] });
    await one.take();
    const left = () => one.queue.getJobCountByTypes("waiting", "active", "delayed");
    // The job of its next time alone
    await until(async () => [times, await left()]).toEqual([2, 1]);
  });

  it("goes on in another worker when its own is killed in the middle", async () => {
    const at = await place();
    const begun: string[] = [];
    const running = (name: string, run: () => Promise<void>): Schedule => ({
      name: "long",
      repeat: { every: 60_000 },
      run: async () => {
        begun.push(name);
        await run();
      },
    });
    const first = await worker(at, {
      now: [running("first", () => new Promise(() => undefined))],
    });
    await first.take();
    await until(() => begun).toEqual(["first"]);
    const second = await worker(at, { now: [running("second", async () => undefined)] });
    await second.take();
    first.dies();
    await until(() => begun).toEqual(["first", "second"]);
  });

  it("is back when it was removed by hand, and gone when nobody names it", async () => {
    const tick = counting("tick", 100);
    const wanted = { now: [tick.schedule, counting("other", 60_000).schedule] };
    const one = await worker(await place(), wanted);
    await one.take();
    expect(await one.names()).toEqual(["other", "tick"]);
    await one.queue.obliterate({ force: true });
    wanted.now = [tick.schedule];
    await requestSync(one.queue);
    await until(() => one.names()).toEqual(["tick"]);
    const { times } = tick;
    await until(() => tick.times).toBeGreaterThan(times + 1);
  });

  it("is back when only its next job was removed by hand", async () => {
    const tick = counting("tick", never);
    const one = await worker(await place(), { now: [tick.schedule] });
    await one.take();
    await until(() => tick.times).toBe(1);
    await until(() => one.queue.getDelayedCount()).toBe(1);
    // BullMQ 6.7 refuses to remove the next job of a scheduler, so this is as somebody would do it in Redis
    for (const { id = "" } of await one.queue.getDelayed()) {
      await one.redis.zrem(one.queue.toKey("delayed"), id);
      await one.redis.del(one.queue.toKey(id));
    }
    expect(await one.queue.getDelayedCount()).toBe(0);
    await one.sync();
    await until(() => one.queue.getDelayedCount()).toBe(1);
  });

  it("comes back to its time when a worker whose clock was ahead has put it off", async () => {
    const at = await place();
    const tick = counting("tick", never);
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    vi.setSystemTime(Date.now() + 3 * never);
    const ahead = await worker(at, { now: [tick.schedule] });
    await ahead.take();
    await until(() => tick.times).toBe(1);
    await ahead.close(100);
    vi.useRealTimers();
    const one = await worker(at, { now: [tick.schedule] });
    await one.take();
    await until(() => tick.times).toBe(2);
    const next = (await one.queue.getJobScheduler("tick"))?.next;
    expect(next).toBeLessThanOrEqual(Date.now() + never);
  });

  it("is neither changed nor removed by a worker that lacks the current policy, or whose clock is off", async () => {
    const at = await place();
    const tick = counting("tick", never);
    const one = await worker(at, { now: [tick.schedule] });
    await one.take();
    const old = await worker(at, { now: [counting("other", 60_000).schedule], isOld: true });
    await old.take();
    const held = await worker(at, { now: [] });
    await held.sync();
    expect(await one.names()).toEqual(["tick"]);
  });

  it("takes nothing while it is held", async () => {
    const at = await place();
    const [tick, others] = [counting("tick", 50), counting("tick", 50)];
    const one = await worker(at, { now: [tick.schedule] });
    await one.take();
    await until(() => tick.times).toBeGreaterThan(1);
    await one.hold();
    const { times } = tick;
    // What comes meanwhile is all another's
    const other = await worker(at, { now: [others.schedule] });
    await other.take();
    await until(() => others.times).toBeGreaterThan(3);
    expect(tick.times).toBe(times);
    await other.hold();
    await one.take();
    await until(() => tick.times).toBeGreaterThan(times + 1);
  });
});
