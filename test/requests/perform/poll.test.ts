import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { type Known, knownBy, moveOwn } from "../../../src/requests/perform/worker-context.ts";
import { type Polled, poll as pollOf, soonest } from "../../../src/requests/perform/poll.ts";
import { lookAt } from "../../../src/requests/perform/reconcile.ts";
import type { StoredRequest } from "../../../src/requests/journal/record.ts";
import { restart } from "../../../src/commands/vm/restart.ts";
import { cardVersion } from "../../../src/requests/render/card-view.ts";
import { renderCard } from "../../../src/requests/render/render-card.ts";
import { shownText } from "../../commands/shown-text.ts";
import { claimedRestart } from "../asking.ts";
import { type WorkerHere, workerHere } from "./worker-here.ts";

const pollKey = "vms/prj-payments";

/** Restarts of this many VMs of one project that the service has accepted just now. */
async function accepted(here: WorkerHere, many: number, after = 0): Promise<void> {
  const { store } = here.by;
  for (let n = after; n < after + many; n++) {
    const sent = await claimedRestart(store, `web-${n + 1}`);
    await store.move(sent, {
      state: "accepted",
      progress: { ...sent.progress, answer: { class: "accepted" } },
      why: "the service said 202",
    });
  }
}

const poll = (here: WorkerHere, polls: number, known?: Known) =>
  pollOf(pollKey, { polls, always: known === undefined, known }, here.by);
function waits(polled: Polled) {
  if (polled.is !== "wait") throw new Error(`it is ${polled.is}`);
  return polled;
}

/** A restart of web-1 that the service has just accepted, and that its worker knows by that. */
async function acceptedHere(here: WorkerHere): Promise<[id: string, known: Known]> {
  const sent = await claimedRestart(here.by.store, "web-1");
  const { sentAt = 0 } = sent.progress;
  const learned = { mark: { status: "REBOOTING", at: sentAt } };
  const moved = await moveOwn(sent, { state: "accepted", learned, why: "202" }, here.by);
  const known = knownBy(moved);
  if (!known) throw new Error("it doesn't wait alone");
  return [sent.record.id, known];
}

/** What is asked of Redis from now on. */
function spyOnTakes({ by }: WorkerHere) {
  const take = vi.spyOn(by.polls, "take");
  const move = vi.spyOn(by.store, "move");
  return () => ({
    takes: take.mock.calls.length,
    moves: move.mock.calls.map(([, { state }]) => state),
  });
}

const reads = (here: WorkerHere) => here.compute.calls().length;

describe("the poll that requests of a project share", () => {
  it("is one read for all, and the more there are, the longer it rests", async () => {
    await using here = await workerHere();
    await accepted(here, 2);
    const { pollFirstMs } = here.by.policy.timing;
    expect(waits(await poll(here, 1)).restMs).toBeLessThan(pollFirstMs / 100);
    await accepted(here, 58, 2);
    expect(reads(here)).toBe(1);
    const { restMs = 0, ms } = waits(await poll(here, 2));
    expect(reads(here)).toBe(2);
    expect(restMs).toBeGreaterThan(pollFirstMs / 10);
    expect(ms).toBeGreaterThanOrEqual(restMs);
  });

  it("comes as soon for each of several as for one alone, and moves none that is as it was", async () => {
    await using here = await workerHere();
    await accepted(here, 2);
    const { timing } = here.by.policy;
    expect(waits(await poll(here, 9)).ms).toBeLessThanOrEqual(Math.ceil(timing.pollFirstMs / 3));
    const asked = spyOnTakes(here);
    await poll(here, 9);
    expect(asked()).toEqual({ takes: 1, moves: [] });
    const ids = await here.by.store.openIds();
    for (const request of await here.by.store.getMany(ids)) {
      const { lastLook, sameSince } = request.progress;
      expect([lastLook?.at, sameSince]).toEqual([sameSince, lastLook?.at]);
    }
  });

  it("judges each alone: one that always throws ends as unknown, and the others are done", async () => {
    await using here = await workerHere();
    await accepted(here, 3);
    const all = await here.by.store.getMany(await here.by.store.openIds());
    const isPoison = ({ record }: StoredRequest) => record.target.name === "web-3";
    const poison = all.find(isPoison)?.record.id ?? "";
    const others = all.filter((one) => !isPoison(one)).map(({ record }) => record.id);
    await here.edit(poison, (record) => ({ ...record, input: { vms: 7 } }));
    const mark = { mark: { status: "REBOOTING", at: 1 } };
    for (const id of others) {
      const request = await here.by.store.get(id);
      if (request)
        await here.by.store.move(request, {
          state: "accepted",
          progress: { ...request.progress, ...mark },
        });
    }
    const states = async () => {
      await poll(here, 9);
      return Promise.all(
        [poison, ...others].map(async (id) => (await here.by.store.get(id))?.state),
      );
    };
    await expect.poll(states, { timeout: 15_000 }).toEqual(["unknown", "done", "done"]);
    expect(here.lines.join("")).toContain("request.judging-failed");
  });

  it("has the card of one that lasts say so, once", async () => {
    await using here = await workerHere();
    await accepted(here, 1);
    const { store } = here.by;
    const [id = ""] = await store.openIds();
    const isOwed = async () => {
      await here.redis.del(here.key("outbox"));
      await poll(here, 1);
      return (await here.redis.zscore(here.key("outbox"), id)) !== null;
    };
    expect(await isOwed()).toBe(false);
    const request = await store.get(id);
    if (!request) throw new Error("it is gone");
    const { progress, state } = request;
    expect(cardVersion(request)).toBe("running");
    await store.move(request, {
      state,
      progress: { ...progress, sentAt: (await store.now()) - 3000 },
    });
    expect(await isOwed()).toBe(true);
    const long = await store.get(id);
    if (!long) throw new Error("it is gone");
    expect(cardVersion(long)).toBe("running long");
    expect(shownText(renderCard(long, restart))).toMatch(/sent at .*, waiting until it runs/);
    expect(await isOwed()).toBe(false);
  });

  it("reads past a record that is broken", async () => {
    await using here = await workerHere();
    await accepted(here, 2);
    const [broken = ""] = await here.by.store.openIds();
    await here.redis.hset(here.requestKey(broken), "progress", "{");
    await poll(here, 1);
    expect(reads(here)).toBe(1);
  });

  it("keeps nothing of a read that decides nothing, and the first that proves that it began", async () => {
    await using here = await workerHere();
    await accepted(here, 1);
    const [id = ""] = await here.by.store.openIds();
    const revision = async () => (await here.by.store.get(id))?.revision ?? 0;
    const before = await revision();
    const { known } = waits(await poll(here, 1));
    here.compute.edit.setStatus({ vm: "payments/web-1", status: "STARTING" });
    await poll(here, 2, known);
    expect(await revision()).toBe(before);
    here.compute.edit.setStatus({ vm: "payments/web-1", status: "REBOOTING" });
    await poll(here, 3);
    expect(await revision()).toBe(before + 1);
    expect((await here.by.store.get(id))?.progress.mark?.status).toBe("REBOOTING");
  });

  it("asks Redis for nothing while its worker knows what waits, until it is decided", async () => {
    await using here = await workerHere();
    const [, known] = await acceptedHere(here);
    const asked = spyOnTakes(here);
    const { known: then } = waits(await poll(here, 1, known));
    await sleep(here.by.policy.timing.stableGapMs);
    expect(await poll(here, 2, then)).toEqual({ is: "ended" });
    expect(asked()).toEqual({ takes: 0, moves: ["done"] });
    expect(await here.redis.exists(here.key("polls"), here.key("pollers"))).toBe(0);
  });

  it("forgets what it read by a clock that was stepped since, ahead or back", async () => {
    await using here = await workerHere();
    const [id, known] = await acceptedHere(here);
    let steppedMs = 0;
    const elapsedMs = () => known.elapsedMs() + steppedMs;
    const { known: then } = waits(await poll(here, 1, { ...known, elapsedMs }));
    // What has stood for a moment seems to have stood for long
    steppedMs = 600_000;
    expect(waits(await poll(here, 2, then)).known).toBeUndefined();
    expect(await here.by.store.get(id)).toMatchObject({ state: "accepted" });
    const { known: taken } = waits(await poll(here, 3));
    if (!taken) throw new Error("it doesn't wait alone");
    const ahead = { ...taken, elapsedMs: () => taken.elapsedMs() + 600_000 };
    const { known: back } = waits(await poll(here, 4, ahead));
    const after = waits(await poll(here, 5, back && { ...back, elapsedMs: taken.elapsedMs }));
    await sleep(here.by.policy.timing.stableGapMs);
    expect(await poll(here, 6, after.known)).toEqual({ is: "ended" });
  });

  it("is judged by the journal where another worker has polled it meanwhile, and doesn't take the key back", async () => {
    await using here = await workerHere();
    const [id, known] = await acceptedHere(here);
    await here.by.polls.take(pollKey, { worker: "w-2", leaseMs: 60_000, always: true });
    here.compute.edit.setStatus({ vm: "payments/web-1", status: "ERROR" });
    const { known: then } = waits(await poll(here, 1, known));
    await sleep(here.by.policy.timing.stableGapMs);
    const request = await here.by.store.get(id);
    if (!request) throw new Error("it is gone");
    await here.by.store.move(request, { state: request.state, progress: request.progress });
    expect(waits(await poll(here, 2, then)).known).toBeUndefined();
    expect(await here.redis.hget(here.key("pollers"), pollKey)).toBe("w-2");
    expect(await pollOf(pollKey, { polls: 3, always: false }, here.by)).toEqual({ is: "theirs" });
  });

  it("is asked of Redis where something else waits for it, also for what was sent just now", async () => {
    await using here = await workerHere();
    await accepted(here, 1);
    const sent = await claimedRestart(here.by.store, "web-2");
    const moved = await moveOwn(sent, { state: "accepted", learned: {}, why: "202" }, here.by);
    expect(moved).toMatchObject({ is: "moved", isAlone: false });
    expect(knownBy(moved)).toBeUndefined();
  });

  it("looks whenever it is rung for when one waits alone: a short reboot is its only proof", async () => {
    await using here = await workerHere();
    await accepted(here, 1);
    for (let rings = 1; rings <= 3; rings++) {
      await poll(here, rings);
      expect(reads(here)).toBe(rings);
    }
  });
});

describe("the next poll of a request", () => {
  const delay = 4_000;
  const timing = { pollFirstMs: 1_000, pollMostMs: 10_000, stableGapMs: 2_000, delay };
  const vm = { id: "vm-1", name: "web-1", projectId: "p", status: "RUNNING" };
  const rebooting = { ...vm, status: "REBOOTING" };
  const mark = { status: "REBOOTING", at: 10_050 };
  const sent = { sentAt: 10_000, mark };

  it.each([
    ["soon, right after the send", "sending", sent, vm, 10_010, 323],
    ["soon, while it is young and not settled", "accepted", sent, rebooting, 10_400, 266],
    ["when it will have stood for long enough", "accepted", sent, vm, 10_400, 2_000],
    [
      "counted from the first of equal reads",
      "accepted",
      { ...sent, lastLook: lookAt(vm, 11_000), sameSince: 10_400 },
      vm,
      11_000,
      1_400,
    ],
    [
      "at the usual pace without a sign that it began",
      "accepted",
      { sentAt: 10_000 },
      vm,
      12_000,
      delay,
    ],
    ["at the usual pace once it is old", "accepted", sent, rebooting, 12_000, delay],
    ["at the usual pace where the outcome is unclear", "unclear", sent, vm, 12_000, delay],
  ] as const)("comes %s", (_when, state, progress, seen, at, inMs) => {
    expect(soonest({ state, progress, changedAt: 10_000 }, seen, at, timing)).toBe(inMs);
  });
});
