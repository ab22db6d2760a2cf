import { describe, expect, it, vi } from "vitest";
import { startCanary } from "../../src/jobs/canary.ts";
import { startRounds } from "../../src/rounds.ts";
import { silentLog } from "../../src/log.ts";

const everyMs = 10;

describe("the canary", () => {
  it("lets a process live whose queue moves, however fast the job comes out", async () => {
    const dead = vi.fn();
    let sent = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    const canary = startCanary({
      workerId: "w-1",
      everyMs,
      async send() {
        canary.sings("w-1");
        if (++sent === 5) resolve();
      },
      onDead: dead,
    });
    await promise;
    await canary.close();
    expect(dead).not.toHaveBeenCalled();
  });

  it("ends a process out of whose queue nothing comes", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const canary = startCanary({
      workerId: "w-1",
      everyMs,
      send: async () => undefined,
      onDead: resolve,
    });
    expect(await promise).toMatch(/^nothing came out of the queue/);
    await canary.close();
  });

  it("blames nobody while Redis is away", async () => {
    const dead = vi.fn();
    let tries = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    const canary = startCanary({
      workerId: "w-1",
      everyMs,
      async send() {
        if (++tries === 5) resolve();
        throw new Error("Redis is away");
      },
      onDead: dead,
    });
    await promise;
    await canary.close();
    expect(dead).not.toHaveBeenCalled();
  });
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
