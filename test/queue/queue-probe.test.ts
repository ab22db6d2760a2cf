import { describe, expect, inject, it, vi } from "vitest";
import { silentLog } from "../../src/log/log.ts";
import { startQueueProbe } from "../../src/queue/queue-probe.ts";
import { createQueues } from "../../src/queue/queues.ts";
import { startWorkers } from "../../src/queue/workers.ts";
import { connectRedis } from "../../src/redis/redis.ts";
import { startRounds } from "../../src/redis/rounds.ts";
import { testRedis } from "../support/with-redis.ts";

const everyMs = 10;

describe("the canary", () => {
  it("lets a process live whose queue moves, however fast the job comes out", async () => {
    const dead = vi.fn();
    let sent = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    const queueProbe = startQueueProbe({
      isHeld: () => false,
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
      isHeld: () => false,
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
      isHeld: () => false,
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
      isHeld: () => false,
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
    heartbeatMs: 500,
    heard: took.resolve,
    advance: async () => ({ is: "ended" }),
    log: silentLog(),
  });
  other.take();
  await took.promise;
  await expect.poll(() => queues.queueProbe("w-1")).toBe(false);
  await other.close(2_000);
  await queues.close();
  for (const one of [connection, blocking]) one.disconnect();
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

it("gives back the job that a held worker was waiting for, and takes none until it may again", async () => {
  await using at = await testRedis();
  const connection = await connectRedis(inject("redisUrl"), "commands", silentLog());
  const queues = createQueues(connection, at.key.prefix);
  const took: string[] = [];
  const workerNamed = async (name: string) => {
    const blocking = await connectRedis(inject("redisUrl"), "worker", silentLog());
    const workers = startWorkers({
      connection: blocking,
      prefix: at.key.prefix,
      concurrency: 1,
      heartbeatMs: 500,
      heard: () => undefined,
      async advance(id) {
        took.push(`${name} ${id}`);
        return { is: "ended" };
      },
      log: silentLog(),
    });
    return { ...workers, blocking };
  };
  const [held, other] = [await workerNamed("held"), await workerNamed("other")];
  held.take();
  await queues.wake("r-1");
  await expect.poll(() => took).toEqual(["held r-1"]);
  await held.hold();
  await queues.wake("r-2");
  other.take();
  await expect.poll(() => took).toEqual(["held r-1", "other r-2"]);
  await other.close(2_000);
  await queues.wake("r-3");
  held.take();
  await expect.poll(() => took).toEqual(["held r-1", "other r-2", "held r-3"]);
  await held.close(2_000);
  await queues.close();
  for (const one of [connection, held.blocking, other.blocking]) one.disconnect();
});
