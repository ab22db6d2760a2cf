import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { stopwatch } from "../../../src/deadline.ts";
import { silentLog } from "../../../src/log/log.ts";
import { createPolls } from "../../../src/requests/journal/polls.ts";
import { createPoller } from "../../../src/requests/perform/poller.ts";
import { poll } from "../../../src/requests/perform/poll.ts";
import { claimedRestart } from "../asking.ts";
import { type WorkerHere, workerHere } from "./worker-here.ts";

const pollKey = "vms/prj-payments";
/** Longer than a test, or shorter than one wants to wait. */
const [longMs, shortMs] = [60_000, 40];

/** Workers of one Redis, and how often each has polled. */
async function workers(here: WorkerHere) {
  const { redis, key } = here;
  const { store } = here.by;
  const polls = createPolls(redis, key, store.getMany);
  const polled: string[] = [];
  const opened: { close(deadlineMs: number): Promise<void> }[] = [];
  const sent = await claimedRestart(store, "web-1");
  return {
    polls,
    polled,
    times: (who: string) => polled.filter((one) => one === who).length,
    worker(
      workerId: string,
      how: { leaseMs: number; nextMs: number; restMs?: number; act?: () => Promise<unknown> },
    ) {
      const { leaseMs, nextMs, restMs = 0, act } = how;
      const poller = createPoller({
        polls,
        workerId,
        leaseMs: () => leaseMs,
        most: 4,
        async poll(taken, { always }) {
          if (!(await polls.take(taken, { worker: workerId, leaseMs, always })))
            return { is: "theirs" };
          polled.push(workerId);
          await act?.();
          return { is: "wait", ms: nextMs, restMs };
        },
        log: silentLog(),
      });
      opened.push(poller);
      return poller;
    },
    /** The only request is done. */
    async settle() {
      const request = await store.get(sent.record.id);
      if (!request) throw new Error("it is gone");
      await store.move(request, { state: "done", progress: request.progress, why: "proven" });
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((poller) => poller.close(1000)));
    },
  };
}

describe("polls by the timers of the worker that sent", () => {
  it("go on until nothing waits, and leave nothing in Redis", async () => {
    await using here = await workerHere();
    await using all = await workers(here);
    const first = all.worker("first", { leaseMs: longMs, nextMs: shortMs });
    await first.watch(pollKey, true);
    await expect.poll(() => all.times("first")).toBeGreaterThan(2);
    await all.settle();
    expect(await here.redis.exists(here.key("polls"), here.key("pollers"))).toBe(0);
  });

  it("are another's once it has sent something to the same project: that must be read at once", async () => {
    await using here = await workerHere();
    await using all = await workers(here);
    const first = all.worker("first", { leaseMs: longMs, nextMs: shortMs });
    const second = all.worker("second", { leaseMs: longMs, nextMs: shortMs });
    await first.watch(pollKey, true);
    await expect.poll(() => all.times("first")).toBeGreaterThan(0);
    await second.watch(pollKey, true);
    await expect.poll(() => all.times("second")).toBeGreaterThan(0);
    const before = all.times("first");
    await expect.poll(() => all.times("second")).toBeGreaterThan(3);
    expect(all.times("first") - before).toBeLessThanOrEqual(1);
  });

  it("are taken over when it polls no more, and not before", async () => {
    await using here = await workerHere();
    await using all = await workers(here);
    const first = all.worker("first", { leaseMs: 300, nextMs: longMs });
    const second = all.worker("second", { leaseMs: 300, nextMs: shortMs });
    await first.watch(pollKey, true);
    await expect.poll(() => all.times("first")).toBe(1);
    // It has put its next poll off, and keeps the key until then
    await vi.waitFor(async () => {
      const [, until] = await here.redis.zrange(here.key("polls"), 0, "-1", "WITHSCORES");
      expect(Number(until)).toBeGreaterThan((await here.by.store.now()) + longMs / 2);
    });
    await second.look();
    await first.close(1000);
    expect(all.times("second")).toBe(0);
    await second.look();
    await expect.poll(() => all.times("second")).toBeGreaterThan(1);
  });

  it("are taken over from one that was killed in the middle of a poll, but stay with one whose poll takes long", async () => {
    await using here = await workerHere();
    await using all = await workers(here);
    const { promise: hangs, resolve: goOn } = Promise.withResolvers<void>();
    const slow = all.worker("slow", { leaseMs: 100, nextMs: longMs, act: () => hangs });
    const other = all.worker("other", { leaseMs: 100, nextMs: longMs });
    await slow.watch(pollKey, true);
    await expect.poll(() => all.times("slow")).toBe(1);
    const until = async () => Number(await here.redis.zscore(here.key("polls"), pollKey));
    const first = await until();
    await expect.poll(until).toBeGreaterThan(first + 100);
    await other.look();
    expect(all.times("other")).toBe(0);
    goOn();
    // A worker that is dead renews nothing
    await all.polls.take(pollKey, { worker: "dead", leaseMs: 30, always: true });
    await vi.waitFor(async () => {
      await other.look();
      expect(all.times("other")).toBe(1);
    });
  });

  it("begin for what a sweep found, wherever the sender has gone", async () => {
    await using here = await workerHere();
    await using all = await workers(here);
    const other = all.worker("other", { leaseMs: longMs, nextMs: longMs });
    await other.watch(pollKey, false);
    expect(all.polled).toEqual([]);
    await other.look();
    await expect.poll(() => all.polled).toEqual(["other"]);
    await other.watch(pollKey, false);
    await other.look();
    expect(all.polled).toEqual(["other"]);
  });

  it("come right after one under way, when something was sent meanwhile", async () => {
    await using here = await workerHere();
    await using all = await workers(here);
    const { promise: hangs, resolve: goOn } = Promise.withResolvers<void>();
    const first = all.worker("first", { leaseMs: longMs, nextMs: longMs, act: () => hangs });
    await first.watch(pollKey, true);
    await expect.poll(() => all.times("first")).toBe(1);
    await first.watch(pollKey, true);
    expect(all.times("first")).toBe(1);
    goOn();
    await expect.poll(() => all.times("first")).toBe(2);
  });

  it("rest for as long as the last one said, however often they are asked for", async () => {
    await using here = await workerHere();
    await using all = await workers(here);
    const restMs = 400;
    const first = all.worker("first", { leaseMs: longMs, nextMs: longMs, restMs });
    await first.watch(pollKey, true);
    await expect.poll(() => all.times("first")).toBe(1);
    const elapsedMs = stopwatch();
    for (let rings = 0; rings < 5; rings++) await first.watch(pollKey, true);
    await expect.poll(() => all.times("first")).toBe(2);
    expect(elapsedMs()).toBeGreaterThan(restMs / 2);
    await sleep(restMs + 100);
    expect(all.times("first")).toBe(2);
  });

  it("begin with what is known for as long as the key is this worker's, and its lease is renewed meanwhile", async () => {
    await using here = await workerHere();
    const polls = createPolls(here.redis, here.key, here.by.store.getMany);
    const leaseMs = 400;
    const how: string[] = [];
    const request = await claimedRestart(here.by.store, "web-1");
    const poller = createPoller({
      polls,
      workerId: "first",
      leaseMs: () => leaseMs,
      most: 4,
      async poll(taken, { always, known }) {
        const isKnown = known !== undefined;
        how.push(isKnown ? "known" : "asked");
        if (!isKnown && !(await polls.take(taken, { worker: "first", leaseMs, always })))
          return { is: "theirs" };
        const { progress } = request;
        const begun = stopwatch();
        const next = known ?? { request, progress, now: 0, elapsedMs: begun };
        return { is: "wait", ms: 100, known: next };
      },
      log: silentLog(),
    });
    await poller.watch(pollKey, true);
    const until = async () => Number(await here.redis.zscore(here.key("polls"), pollKey));
    const first = await vi.waitUntil(until);
    await expect.poll(until, { timeout: 5000 }).toBeGreaterThan(first);
    expect(new Set(how.slice(1))).toEqual(new Set(["known"]));
    await polls.take(pollKey, { worker: "second", leaseMs: longMs, always: true });
    await expect
      .poll(() => how.filter((one) => one === "asked"), { timeout: 5000 })
      .toHaveLength(2);
    const ended = how.length;
    await sleep(300);
    expect(how).toHaveLength(ended);
    await poller.close(1000);
  });

  it("go on after Redis failed", async () => {
    await using here = await workerHere();
    await using all = await workers(here);
    let fails = 2;
    const act = async () => {
      if (fails-- > 0) throw new Error("Redis is away");
    };
    const first = all.worker("first", { leaseMs: shortMs, nextMs: longMs, act });
    await first.watch(pollKey, true);
    await expect.poll(() => all.times("first")).toBe(3);
  });

  it("forget a key whose requests are gone", async () => {
    await using here = await workerHere();
    await here.redis.sadd(here.key("watch", pollKey), "r-gone");
    expect(await poll(pollKey, { polls: 1, always: true }, here.by)).toEqual({ is: "ended" });
    expect(await here.redis.exists(here.key("polls"), here.key("pollers"))).toBe(0);
  });
});
