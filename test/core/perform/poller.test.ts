import { dueInMs } from "../../support/pending.ts";
import { describe, expect, it, vi } from "vitest";
import { startWork } from "../../support/start-delivery.ts";
import type { Policy } from "../../../src/config/policy-file.ts";
import { createPolls } from "../../../src/core/request/polls.ts";
import { poll, pollWork } from "../../../src/core/perform/poll.ts";
import { stopwatch } from "../../../src/core/perform/send.ts";
import { claimedRestart, movedBy, requestIn, stageOf } from "../asking.ts";
import { type WorkerHere, workerHere } from "./worker-here.ts";
import { until } from "../../support/until.ts";

const pollKey = "vms/prj-payments";
/** Prepares workers that poll on one Redis. `timing` overrides the timing of their policy. */
async function prepareWorkers(here: WorkerHere, timing: Partial<Policy["timing"]> = {}) {
  const { store } = here.by;
  const opened: { close(deadlineMs: number): Promise<void> }[] = [];
  const sent = await claimedRestart(store, "web-1");
  return {
    claimedAt: sent.stage.call.sentAt,
    /** Counts the calls to the compute service. */
    reads: () => here.compute.calls().length,
    worker() {
      const polls = createPolls(here.redis, here.key, store.latest);
      const { policy } = here.by;
      const by = {
        ...here.by,
        polls,
        policy: { ...policy, timing: { ...policy.timing, ...timing } },
      };
      const work = pollWork(() => by);
      const { redis, key } = here;
      const worker = startWork("polls", [work], { redis, key, relayEveryMs: 300 });
      opened.push(worker);
      return { ...worker, soon: (other = pollKey) => polls.pollSoon(other) };
    },
    /** Moves the only request to done. */
    async settle() {
      const request = requestIn(await store.get(sent.record.id), "sending");
      const to = { ...request.stage, state: "unclear" } as const;
      const unclear = await movedBy(store.move(request, { to, why: "no answer" }));
      await store.move(unclear, { to: stageOf("done"), why: "proven" });
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((worker) => worker.close(1000)));
    },
  };
}

describe("polls", () => {
  it("go on until nothing waits, and leave nothing in Redis", async () => {
    await using here = await workerHere();
    await using all = await prepareWorkers(here);
    await all.worker().soon();
    await until(all.reads).toBeGreaterThan(2);
    await all.settle();
    await until(() => here.by.polls.pending.depth()).toBe(0);
    expect(await here.redis.exists(here.key("watch", pollKey))).toBe(0);
  });

  it("begin by themselves after a claim whose worker has gone", async () => {
    await using here = await workerHere();
    await using all = await prepareWorkers(here);
    // The script of the claim makes the poll due. The worker that claimed has added no job.
    expect(await here.by.polls.pending.dueAt(pollKey)).toBeGreaterThan(all.claimedAt + 500);
    all.worker();
    await until(all.reads).toBeGreaterThan(0);
  });

  it("come right after one under way, when something was sent meanwhile", async () => {
    await using here = await workerHere();
    // The interval is so long that only a send during the first poll can cause the second one.
    await using all = await prepareWorkers(here, { pollFirstMs: 600_000, pollMostMs: 600_000 });
    const read = vi.spyOn(here.by.store, "now");
    const { promise: hangs, resolve: goOn } = Promise.withResolvers<number>();
    read.mockImplementationOnce(() => hangs);
    const worker = all.worker();
    await worker.soon();
    await until(all.reads).toBe(1);
    await worker.soon();
    // What is rung for later is polled, and the key under way isn't
    await worker.soon("vms/prj-none");
    await until(() => here.by.polls.pending.dueAt("vms/prj-none")).toBeUndefined();
    expect(all.reads()).toBe(1);
    goOn(Date.now());
    await until(all.reads).toBe(2);
  });

  it("rest between two when many requests wait, however often they are asked for", async () => {
    await using here = await workerHere();
    await using all = await prepareWorkers(here);
    await Promise.all(
      Array.from({ length: 69 }, (_, n) => claimedRestart(here.by.store, `web-${n + 2}`)),
    );
    const worker = all.worker();
    const elapsedMs = stopwatch();
    await worker.soon();
    await until(all.reads).toBe(1);
    for (let rings = 0; rings < 5; rings++) await worker.soon();
    await until(all.reads).toBe(2);
    expect(elapsedMs()).toBeGreaterThan(here.by.policy.timing.pollFirstMs / 2);
  });

  it("go on after Redis failed", async () => {
    await using here = await workerHere();
    await using all = await prepareWorkers(here);
    const read = vi.spyOn(here.by.store, "now");
    read.mockRejectedValueOnce(new Error("Redis is away"));
    const worker = all.worker();
    await worker.soon();
    await until(all.reads).toBeGreaterThan(1);
  });

  it("begin for what a sweep found", async () => {
    await using here = await workerHere();
    await using all = await prepareWorkers(here);
    await here.by.polls.pending.remove(pollKey);
    await here.by.polls.pending.restore([pollKey]);
    all.worker();
    await until(all.reads).toBeGreaterThan(0);
  });

  it("forget a key whose requests are gone", async () => {
    await using here = await workerHere();
    await here.redis.sadd(here.key("watch", pollKey), "r-gone");
    expect(await poll(pollKey, here.by)).toBeUndefined();
    await here.by.polls.next(pollKey, 1, "0.5");
    expect(await dueInMs(here.redis, here.by.polls.pending, pollKey)).toBeUndefined();
    expect(await here.redis.exists(here.key("watch", pollKey))).toBe(0);
  });
});
