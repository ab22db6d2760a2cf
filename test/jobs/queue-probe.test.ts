import { describe, expect, inject, it, vi } from "vitest";
import { createQueues, startWorkers } from "../../src/jobs/queues.ts";
import { connectRedis, type RedisClient } from "../../src/redis/redis.ts";
import { testRedis } from "../support/with-redis.ts";
import { startQueueProbe } from "../../src/jobs/liveness.ts";
import { startRounds } from "../../src/redis/rounds.ts";
import { silentLog } from "../../src/log/log.ts";

const everyMs = 10;

describe("the canary", () => {
  it("lets a process live whose queue moves, however fast the job comes out", async () => {
    const dead = vi.fn();
    let sent = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    const queueProbe = startQueueProbe({
      workerId: "w-1",
      everyMs,
      async send() {
        queueProbe.heard();
        if (++sent === 5) resolve();
        return false;
      },
      onDead: dead,
    });
    await promise;
    await queueProbe.close();
    expect(dead).not.toHaveBeenCalled();
  });

  it("lets a process live whose probes others take, but not for ever", async () => {
    const dead = vi.fn();
    let sent = 0;
    const ended = Promise.withResolvers<void>();
    const queueProbe = startQueueProbe({
      workerId: "w-1",
      everyMs,
      async send() {
        sent += 1;
        // Now and then it is the turn of this one
        if (sent <= 40 && sent % 10 === 0) queueProbe.heard();
        return false;
      },
      onDead(why) {
        dead(sent, why);
        ended.resolve();
      },
    });
    await ended.promise;
    await queueProbe.close();
    expect(dead.mock.calls[0]).toEqual([56, expect.stringMatching(/only elsewhere$/)]);
  });

  it("ends a process out of whose queue nothing comes", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const queueProbe = startQueueProbe({
      workerId: "w-1",
      everyMs,
      send: async () => true,
      onDead: resolve,
    });
    expect(await promise).toMatch(/^nothing came out of the queue/);
    await queueProbe.close();
  });

  it("blames nobody while Redis is away", async () => {
    const dead = vi.fn();
    let tries = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    const queueProbe = startQueueProbe({
      workerId: "w-1",
      everyMs,
      async send() {
        if (++tries === 5) resolve();
        throw new Error("Redis is away");
      },
      onDead: dead,
    });
    await promise;
    await queueProbe.close();
    expect(dead).not.toHaveBeenCalled();
  });
});

it("tells a probe that waits from one that another worker took", async () => {
  await using at = await testRedis();
  const connection = await connectRedis(inject("redisUrl"), "commands", silentLog());
  const queues = createQueues(connection, at.key.prefix);
  expect(await queues.queueProbe("w-1")).toBe(false);
  expect(await queues.queueProbe("w-1")).toBe(true);
  const took = Promise.withResolvers<void>();
  const blocking = await connectRedis(inject("redisUrl"), "worker", silentLog());
  const other = startWorkers({
    connection: blocking,
    prefix: at.key.prefix,
    concurrency: 1,
    lockMs: 60_000,
    lookMs: 1_000,
    heard: took.resolve,
    advance: async () => ({ is: "ended" }),
    wake: async () => undefined,
    log: silentLog(),
  });
  other.begin();
  await took.promise;
  await expect.poll(() => queues.queueProbe("w-1")).toBe(false);
  await other.close(2_000);
  await queues.close();
  for (const one of [connection, blocking]) one.disconnect();
});

it("takes the first step where the request was made, and is told only when that must wait", async () => {
  await using at = await testRedis();
  const connections = await Promise.all(
    (["commands", "worker"] as const).map((purpose) =>
      connectRedis(inject("redisUrl"), purpose, silentLog()),
    ),
  );
  const [connection, blocking] = connections as [RedisClient, RedisClient];
  const queues = createQueues(connection, at.key.prefix);
  const hangs = Promise.withResolvers<void>();
  const stepped: string[] = [];
  const begun: unknown[] = [];
  const opening = { request: undefined, now: 1, frozen: undefined, throttledMs: 0 };
  const jobs = startWorkers({
    connection: blocking,
    prefix: at.key.prefix,
    concurrency: 2,
    lockMs: 60_000,
    lookMs: 1_000,
    heard: () => undefined,
    async advance(id, known) {
      stepped.push(id);
      begun.push(known);
      if (id === "r-fails") throw new Error("Redis is away");
      if (id === "r-hangs") await hangs.promise;
      return id === "r-waits" ? { is: "wait", ms: 60_000 } : { is: "ended" };
    },
    wake: queues.wake,
    log: silentLog(),
  });
  queues.stepsHere(jobs.stepNow);
  await queues.wakeNew("r-early");
  expect(stepped).toEqual([]);
  expect(await queues.counts()).toMatchObject({ waiting: 1 });
  jobs.begin();
  await expect.poll(() => stepped).toEqual(["r-early"]);
  const added = async () => Number(await at.redis.get(`${at.key.prefix}:requests:id`)) || 0;
  const jobIds = await added();
  for (const id of ["r-ends", "r-fails", "r-waits"]) {
    await queues.wakeNew(id, opening);
    await expect.poll(() => stepped.at(-1)).toBe(id);
  }
  await expect.poll(() => queues.counts()).toMatchObject({ waiting: 0, delayed: 1 });
  expect(begun).toEqual([undefined, opening, opening, opening]);
  expect(await added()).toBe(jobIds + 1);
  // There is room for one
  await queues.wakeNew("r-hangs");
  await queues.wakeNew("r-queued");
  await expect.poll(() => stepped.at(-1)).toBe("r-queued");
  expect(await added()).toBe(jobIds + 2);
  const closed = jobs.close(5_000);
  await queues.wakeNew("r-late");
  expect(await added()).toBe(jobIds + 3);
  hangs.resolve();
  await closed;
  await queues.close();
  for (const one of connections) one.disconnect();
});

describe("something done over and over", () => {
  it("goes on after a failure, and never twice at once", async () => {
    let rounds = 0;
    let running = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    const done = startRounds(
      "test",
      1,
      async () => {
        running++;
        expect(running).toBe(1);
        await Promise.resolve();
        running--;
        if (++rounds === 5) resolve();
        throw new Error("fails every time");
      },
      silentLog(),
    );
    await Promise.all([done.now(), done.now()]);
    await promise;
    await done.close();
  });
});
