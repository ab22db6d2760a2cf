import { describe, expect, it, vi } from "vitest";
import type { Vm } from "../../../src/fleet/compute/compute.ts";
import { lookAt } from "../../../src/core/perform/judge.ts";
import { poll as pollOf, soonest } from "../../../src/core/perform/poll.ts";
import { type PolledStage, callOf, readsOf } from "../../../src/core/request/stage.ts";
import type { StoredRequest } from "../../../src/core/request/stored-request.ts";
import { restart } from "../../../src/commands/vm/restart.ts";
import { cardVersion } from "../../../src/core/cards/render-result.ts";
import { renderCard } from "../../../src/core/cards/render-card.ts";
import { shownText } from "../../commands/shown-text.ts";
import { called, claimedRestart, requestIn, stageOf } from "../asking.ts";
import { type WorkerHere, workerHere } from "./worker-here.ts";
import { until } from "../../support/until.ts";

const pollKey = "vms/prj-payments";

/**
 * Stores restarts of this many VMs of one project that the service has accepted just now. The first
 * `after` VMs are left out.
 */
async function storeAccepted(here: WorkerHere, many: number, after = 0): Promise<void> {
  const { store } = here.by;
  for (let n = after; n < after + many; n++) {
    const sent = await claimedRestart(store, `web-${n + 1}`);
    const call = { ...sent.stage.call, answer: { class: "accepted" } };
    await store.move(sent, {
      to: { ...sent.stage, state: "accepted", call },
      why: "the service said 202",
    });
  }
}

const acceptedOf = async (id: string, { by }: WorkerHere) =>
  requestIn(await by.store.get(id), "accepted");

const poll = (here: WorkerHere) => pollOf(pollKey, here.by);

async function waits(polled: ReturnType<typeof poll>) {
  const next = await polled;
  if (!next) throw new Error("nothing is left to poll");
  return next;
}

const reads = (here: WorkerHere) => here.compute.calls().length;

describe("the poll that requests of a project share", () => {
  it("is one read for all, and the more there are, the longer it rests", async () => {
    await using here = await workerHere();
    await storeAccepted(here, 4);
    const { pollFirstMs } = here.by.policy.timing;
    expect((await waits(poll(here))).restMs).toBeLessThan(pollFirstMs / 100);
    await storeAccepted(here, 56, 4);
    expect(reads(here)).toBe(1);
    const { restMs, inMs } = await waits(poll(here));
    expect(reads(here)).toBe(2);
    expect(restMs).toBeGreaterThan(pollFirstMs / 10);
    expect(inMs).toBeGreaterThanOrEqual(restMs);
  });

  it("reads no whole project for a few of its VMs", async () => {
    await using here = await workerHere();
    await storeAccepted(here, 2);
    await waits(poll(here));
    const paths = here.compute.calls().map(({ path }) => path);
    expect(paths.toSorted()).toEqual(["/v1/vms/vm-payments-web-1", "/v1/vms/vm-payments-web-2"]);
    // When none of the VMs can be read, the next poll comes when the service says.
    here.compute.weather({ match: "GET /v1/vms/*", status: 429, retryAfter: 7 });
    expect((await waits(poll(here))).inMs).toBe(7000);
  });

  it.each([
    ["its record has no status", { set: { status: null } }],
    ["its record has no ID", { without: ["id"] }],
  ])("reads a VM alone where %s, and takes it for neither gone nor settled", async (_, spoiled) => {
    await using here = await workerHere();
    for (const name of ["web-3", "web-4"])
      here.compute.edit.addVm({ project: "payments", name, id: `vm-payments-${name}` });
    await storeAccepted(here, 4);
    here.compute.weather({
      match: "GET /v1/projects/:id/vms",
      spoils: { "vm-payments-web-2": spoiled },
    });
    await waits(poll(here));
    expect(here.compute.calls().map(({ path }) => path)).toEqual([
      "/v1/projects/prj-payments/vms",
      "/v1/vms/vm-payments-web-2",
    ]);
    const looks = async () => {
      const all = await here.by.store.getMany(await here.by.store.openIds());
      return all.map(({ record, stage }) => `${record.target.name} ${readsOf(stage).last?.status}`);
    };
    const all = ["web-1 RUNNING", "web-2 RUNNING", "web-3 RUNNING", "web-4 RUNNING"];
    expect((await looks()).toSorted()).toEqual(all);
    // web-2 can't be read alone either, so nothing is concluded about it. The others are still
    // judged.
    here.compute.weather({ match: "GET /v1/vms/*", status: 404 });
    here.compute.weather({ match: "GET /v1/projects", status: 503 });
    await waits(poll(here));
    expect((await looks()).toSorted()).toEqual(all);
    const [blind] = (await here.by.store.getMany(await here.by.store.openIds())).filter(
      ({ stage }) => readsOf(stage).blindSince !== undefined,
    );
    expect(blind?.record.target.name).toBe("web-2");
  });

  it("misses no short reboot of a restart that the service queues: it comes often until that has begun", async () => {
    await using here = await workerHere();
    await storeAccepted(here, 1);
    const [id = ""] = await here.by.store.openIds();
    const { stableGapMs, pollMostMs } = here.by.policy.timing;
    const pollsAfter = async (ms: number) => {
      const { stage, ...sent } = await acceptedOf(id, here);
      const call = { ...stage.call, sentAt: (await here.by.store.now()) - ms };
      await here.by.store.saveFacts({ ...sent, stage }, { ...stage, call });
      return (await waits(poll(here))).inMs;
    };
    const { restartMarkMs } = here.by.policy.timing;
    expect(await pollsAfter(restartMarkMs / 2)).toBeLessThanOrEqual(stableGapMs);
    expect(stableGapMs).toBeLessThan(pollMostMs);
    here.compute.edit.setStatus({ vm: "payments/web-1", status: "REBOOTING" });
    await poll(here);
    expect(await pollsAfter(restartMarkMs / 2)).toBe(pollMostMs);
  });

  it("gives up after several failed reads, however late the first of them comes", async () => {
    await using here = await workerHere();
    await storeAccepted(here, 1);
    const [id = ""] = await here.by.store.openIds();
    const { stage, ...sent } = await acceptedOf(id, here);
    const longAgo = { ...stage.call, sentAt: 1 };
    const blind = { ...stage.reads, blindSince: 1 };
    await here.by.store.saveFacts({ ...sent, stage }, { ...stage, call: longAgo, reads: blind });
    here.compute.weather({ match: "GET *", status: 503 });
    const states: unknown[] = [];
    while (states.at(-1) !== "unknown" && states.length < 20) {
      await poll(here).catch(() => undefined);
      states.push((await here.by.store.get(id))?.state);
    }
    expect(states.indexOf("unclear")).toBe(6);
    expect(states.at(-1)).toBe("unknown");
  });

  it("comes as soon for each of several as for one alone, and moves none that is as it was", async () => {
    await using here = await workerHere();
    await storeAccepted(here, 2);
    // The first interval is so long that the requests are younger than it, even on a busy machine.
    const timing = { ...here.by.policy.timing, pollFirstMs: 60_000, pollMostMs: 600_000 };
    here.by.policy = { ...here.by.policy, timing };
    expect((await waits(poll(here))).inMs).toBeLessThanOrEqual(Math.ceil(timing.pollFirstMs / 3));
    const writes = [vi.spyOn(here.by.store, "move"), vi.spyOn(here.by.store, "saveFacts")];
    await poll(here);
    for (const write of writes) expect(write).not.toHaveBeenCalled();
    const ids = await here.by.store.openIds();
    for (const request of await here.by.store.getMany(ids)) {
      const { last, sameSince } = readsOf(request.stage);
      expect([last?.at, sameSince]).toEqual([sameSince, last?.at]);
    }
  });

  it("judges each alone: one that always throws ends as unknown, and the others are done", async () => {
    await using here = await workerHere();
    await storeAccepted(here, 3);
    const all = await here.by.store.getMany(await here.by.store.openIds());
    const isPoison = ({ record }: StoredRequest) => record.target.name === "web-3";
    const poison = all.find(isPoison)?.record.id ?? "";
    const others = all.filter((one) => !isPoison(one)).map(({ record }) => record.id);
    await here.edit(poison, (record) => ({ ...record, input: { vms: 7 } }));
    const mark = { status: "REBOOTING", at: 1 };
    for (const id of others) {
      const request = await acceptedOf(id, here);
      const call = { ...request.stage.call, mark };
      await here.by.store.saveFacts(request, { ...request.stage, call });
    }
    const states = async () => {
      await poll(here);
      return Promise.all(
        [poison, ...others].map(async (id) => (await here.by.store.get(id))?.state),
      );
    };
    await until(states).toEqual(["unknown", "done", "done"]);
    expect(here.lines.join("")).toContain("request.judging-failed");
  });

  it("has the card of one that lasts say so, once", async () => {
    await using here = await workerHere();
    await storeAccepted(here, 1);
    const { store } = here.by;
    const [id = ""] = await store.openIds();
    await poll(here);
    const isMoved = async () => {
      const before = (await store.get(id))?.revision;
      await poll(here);
      return (await store.get(id))?.revision !== before;
    };
    expect(await isMoved()).toBe(false);
    const request = await acceptedOf(id, here);
    const { stage } = request;
    expect(cardVersion(request)).toBe("running");
    // The last read showed nothing new.
    const last = { ...lookAt(undefined, 0), ...stage.reads.last, at: await store.now() };
    await store.saveFacts(request, {
      ...stage,
      call: { ...stage.call, sentAt: last.at - 2990 },
      reads: { ...stage.reads, last },
    });
    await store.outbox.remove(id);
    await until(() => store.now()).toBeGreaterThanOrEqual(last.at + 10);
    expect(await isMoved()).toBe(true);
    expect(await store.outbox.among([id])).toEqual(new Set([id]));
    const long = await store.get(id);
    if (!long) throw new Error("it is gone");
    expect(cardVersion(long)).toBe("running long");
    expect(shownText(renderCard(long, restart))).toMatch(/sent at .*, waiting until it runs/);
    expect(await isMoved()).toBe(false);
  });

  it.each(["{", "{}"])("reads past a record that is broken: its stage is %s", async (stage) => {
    await using here = await workerHere();
    await storeAccepted(here, 2);
    const [broken = ""] = await here.by.store.openIds();
    await here.redis.hset(here.requestKey(broken), "stage", stage);
    await poll(here);
    expect(reads(here)).toBe(1);
  });

  it("keeps nothing of a read like the last one, and the first that proves that it began", async () => {
    await using here = await workerHere();
    await storeAccepted(here, 1);
    const [id = ""] = await here.by.store.openIds();
    const revision = async () => (await here.by.store.get(id))?.revision ?? 0;
    await poll(here);
    const before = await revision();
    await poll(here);
    expect(await revision()).toBe(before);
    await here.by.store.outbox.remove(id);
    here.compute.edit.setStatus({ vm: "payments/web-1", status: "REBOOTING" });
    await poll(here);
    expect(await revision()).toBe(before + 1);
    expect((await acceptedOf(id, here)).stage.call.mark?.status).toBe("REBOOTING");
    // The card shows the same as before, so it isn't rendered again.
    expect(await here.by.store.outbox.among([id])).toEqual(new Set());
  });

  it("keeps nothing of the reads after the quiet period either, but for the first", async () => {
    await using here = await workerHere();
    await storeAccepted(here, 1);
    const { store, policy } = here.by;
    const [id = ""] = await store.openIds();
    await poll(here);
    const request = await acceptedOf(id, here);
    const sentAt = (await store.now()) - policy.timing.quiesceMs;
    const { mark: _none, ...call } = request.stage.call;
    await store.saveFacts(request, { ...request.stage, call: { ...call, sentAt } });
    await poll(here);
    const before = await acceptedOf(id, here);
    expect(before.stage.reads.quietSince).toBeDefined();
    for (let polls = 0; polls < 3; polls++) await poll(here);
    expect((await store.get(id))?.revision).toBe(before.revision);
  });

  it("counts what was sent and read before Redis's clock was set back from then on", async () => {
    await using here = await workerHere();
    await storeAccepted(here, 1);
    const { store } = here.by;
    const [id = ""] = await store.openIds();
    here.compute.edit.setStatus({ vm: "payments/web-1", status: "REBOOTING" });
    await poll(here);
    here.compute.edit.setStatus({ vm: "payments/web-1", status: "RUNNING" });
    await poll(here);
    const request = await acceptedOf(id, here);
    const { stage } = request;
    const ahead = (await store.now()) + 3_600_000;
    const last = { ...lookAt(undefined, 0), ...stage.reads.last, at: ahead };
    await store.saveFacts(request, {
      ...stage,
      call: { ...stage.call, sentAt: ahead },
      reads: { ...stage.reads, last, sameSince: ahead },
    });
    await until(async () => (await poll(here)) === undefined);
    const done = requestIn(await store.get(id), "done");
    expect(done.stage.why).toBe("read RUNNING");
    expect(callOf(done.stage)?.sentAt).toBeLessThanOrEqual(await store.now());
  });

  it("looks whenever it is rung for when one waits alone: a short reboot is its only proof", async () => {
    await using here = await workerHere();
    await storeAccepted(here, 1);
    for (let rings = 1; rings <= 3; rings++) {
      await poll(here);
      expect(reads(here)).toBe(rings);
    }
  });
});

describe("the next poll of a request", () => {
  const delay = 4_000;
  const timing = {
    pollFirstMs: 1_000,
    pollMostMs: 10_000,
    stableGapMs: 2_000,
    transitionGapMs: 500,
    delay,
  };
  const vm = { id: "vm-1", name: "web-1", projectId: "p", status: "RUNNING" };
  const rebooting = { ...vm, status: "REBOOTING" };
  const mark = { status: "REBOOTING", at: 10_050 };
  const sent = called({ sentAt: 10_000, mark });
  const running = stageOf("accepted", sent);

  it.each<[when: string, stage: PolledStage, seen: Vm, at: number, inMs: number]>([
    ["soon, right after the send", stageOf("sending", sent), vm, 10_010, 323],
    ["soon, while it is young and not settled", running, rebooting, 10_400, 266],
    ["when it will have stood for long enough", running, vm, 10_400, 500],
    [
      "later where a newer timestamp is the only sign",
      stageOf("accepted", called({ sentAt: 10_000, mark: { status: "RUNNING", at: 10_050 } })),
      vm,
      10_400,
      2_000,
    ],
    [
      "counted from the first of equal reads",
      { ...running, reads: { last: lookAt(vm, 10_700), sameSince: 10_400 } },
      vm,
      10_700,
      200,
    ],
    [
      "at the usual pace without a sign that it began",
      stageOf("accepted", called({ sentAt: 10_000 })),
      vm,
      12_000,
      delay,
    ],
    ["at the usual pace once it is old", running, rebooting, 12_000, delay],
    ["at the usual pace where the outcome is unclear", stageOf("unclear", sent), vm, 12_000, delay],
  ])("comes %s", (_when, stage, seen, at, inMs) => {
    expect(soonest(stage, seen, at, timing)).toBe(inMs);
  });
});
