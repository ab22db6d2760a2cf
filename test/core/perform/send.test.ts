import { afterEach, describe, expect, it, vi } from "vitest";
import { createCompute } from "../../../src/fleet/compute/create-compute.ts";
import { restart } from "../../../src/commands/vm/restart.ts";
import { advance } from "../../../src/core/perform/perform.ts";
import { claimAndSend } from "../../../src/core/perform/send.ts";
import { sweep } from "../../../src/core/perform/sweep.ts";
import type { RequestIn } from "../../../src/core/request/stored-request.ts";
import { claimedBy, failover, storeRequest, requestIn, restartOf } from "../asking.ts";
import { asChange, type WorkerHere, workerHere } from "./worker-here.ts";
import { until } from "../../support/until.ts";

async function asked(here: WorkerHere): Promise<RequestIn<"authorized">> {
  const { approval: _none, ...plain } = restartOf(await here.vm("web-2"));
  return storeRequest(here.by.store, plain);
}

const send = (request: RequestIn<"authorized">, here: WorkerHere) =>
  claimAndSend(
    request,
    asChange(restart, { vms: [request.record.target.id] }),
    { before: undefined, vmIds: [], safety: undefined },
    here.by,
  );

/** Lets something happen when this worker reaches a point between claim and send. */
function when(here: WorkerHere, point: string, happens: () => Promise<unknown>): void {
  here.by.at = async (reached) => {
    if (reached === point) await happens();
  };
}

describe("between claim and send", () => {
  afterEach(() => vi.restoreAllMocks());

  it.each(["claim", "send"])(
    "a machine suspended for minutes at the %s sends nothing: only its monotonic clock stood still",
    async (point) => {
      await using here = await workerHere();
      const request = await asked(here);
      const now = Date.now.bind(Date);
      when(here, point, async () => {
        vi.spyOn(Date, "now").mockImplementation(() => now() + 300_000);
      });
      await send(request, here);
      expect(here.compute.writes()).toEqual([]);
      expect(await here.by.store.get(request.record.id)).toMatchObject({
        state: "authorized",
        stage: { why: "too long between claim and send; nothing was sent" },
      });
    },
  );

  it("nothing is sent on a claim that Redis lost to another worker, whose claim stays", async () => {
    await using here = await workerHere();
    const request = await asked(here);
    const failOver = await failover({ ...here, store: here.by.store }, request);
    when(here, "send", async () => {
      await failOver();
      await claimedBy("w-2", request, here.by.store);
    });
    await send(request, here);
    expect(here.compute.writes()).toEqual([]);
    expect(await here.by.store.get(request.record.id)).toMatchObject({
      state: "sending",
      owner: "w-2",
    });
  });

  it("a claim that isn't durable is given back, and is made again when it can be", async () => {
    await using here = await workerHere();
    const request = await asked(here);
    here.by.durabilityProblem = async () => "no replica has it; nothing was sent";
    await send(request, here);
    const returned = requestIn(await here.by.store.get(request.record.id), "authorized");
    expect(returned.stage).toMatchObject({
      why: "no replica has it; nothing was sent",
      setbacks: { returned: 1 },
    });
    expect(here.by.ledger.entries()).toEqual([]);
    here.by.durabilityProblem = async () => undefined;
    await send(returned, here);
    expect(here.compute.writes()).toHaveLength(1);
  });

  it("a claim that was given back before Redis's clock was set back is made again at once", async () => {
    await using here = await workerHere();
    const { id } = (await asked(here)).record;
    const { store, redis } = { ...here.by, ...here };
    const step = async () => {
      await advance(id, here.by);
      return here.compute.writes().length;
    };
    const request = requestIn(await store.get(id), "authorized");
    const notBefore = (await store.now()) + 3_600_000;
    await store.move(request, { to: { ...request.stage, notBefore }, why: "given back" });
    expect(await step()).toBe(0);
    await redis.hincrby(here.requestKey(id), "changedAt", 3_595_000);
    expect(await step()).toBe(1);
  });

  it.each(["claim", "ledger", "send"])(
    "what failed at the %s was provably not sent: its worker gives it back, it is never unknown",
    async (point) => {
      await using here = await workerHere();
      const request = await asked(here);
      when(here, point, () => Promise.reject(new Error("Command timed out")));
      await expect(send(request, here)).rejects.toThrow("timed out");
      expect((await here.by.store.get(request.record.id))?.state).toBe("sending");
      await sweep(here.by);
      expect((await here.by.store.get(request.record.id))?.state).toBe("authorized");
      expect(here.compute.writes()).toEqual([]);
    },
  );

  it.each(["sending", "unclear"] as const)(
    "a claim that failed and that Redis never had says nothing of the next one, which is %s",
    async (state) => {
      await using here = await workerHere();
      const request = await asked(here);
      const { store } = here.by;
      const broken = { ...store, move: () => Promise.reject(new Error("Connection is closed.")) };
      await expect(send(request, { ...here, by: { ...here.by, store: broken } })).rejects.toThrow();
      when(here, "answer", async () => {
        const claimed = requestIn(await store.get(request.record.id), "sending");
        if (state === "unclear")
          await store.move(claimed, { to: { ...claimed.stage, state }, why: "no clear answer" });
        await sweep(here.by);
        expect((await store.get(request.record.id))?.state).toBe(state);
        throw new Error("Connection is closed.");
      });
      await expect(send(request, here)).rejects.toThrow("closed");
      await sweep(here.by);
      expect((await store.get(request.record.id))?.state).toBe(state);
      expect(here.compute.writes()).toHaveLength(1);
    },
  );

  it("what failed after the answer is looked at, because it may have happened", async () => {
    await using here = await workerHere();
    const request = await asked(here);
    when(here, "answer", () => Promise.reject(new Error("Command timed out")));
    await expect(send(request, here)).rejects.toThrow("timed out");
    await sweep(here.by);
    expect((await here.by.store.get(request.record.id))?.state).toBe("sending");
    expect(here.compute.writes()).toHaveLength(1);
  });
});

describe("polls of a restart", () => {
  it("begin with its answer, which says that it began", async () => {
    await using here = await workerHere();
    const request = await asked(here);
    // The answer comes before a call counts as long
    const timing = { ...here.by.policy.timing, pollFirstMs: 600_000 };
    here.by.policy = { ...here.by.policy, timing };
    const soon = vi.spyOn(here.by.polls, "pollSoon");
    const [starts, clears] = [
      vi.spyOn(globalThis, "setTimeout"),
      vi.spyOn(globalThis, "clearTimeout"),
    ];
    await send(request, here);
    expect(soon.mock.calls).toEqual([["vms/prj-payments"]]);
    const isLooking = starts.mock.calls.findIndex(([, ms]) => ms === 0.15 * timing.pollFirstMs);
    expect(clears).toHaveBeenCalledWith(starts.mock.results[isLooking]?.value);
    vi.restoreAllMocks();
    const after = await here.by.store.get(request.record.id);
    expect(after).toMatchObject({ state: "accepted", stage: { call: { mark: {} } } });
  });

  it("begin while its call is under way, when that takes long; should its worker die, within a second of the claim", async () => {
    await using here = await workerHere();
    const soon = vi.spyOn(here.by.polls, "pollSoon");
    here.by.at = async (point) => {
      if (point === "claim") {
        const { polls, store } = here.by;
        const dueAt = (await polls.pending.dueAt("vms/prj-payments")) ?? 0;
        const [id = ""] = await store.openIds();
        const claimedAt = (await store.get(id))?.changedAt ?? Infinity;
        const inMs = dueAt - claimedAt;
        expect(inMs > 0 && inMs <= 1000).toBe(true);
      }
      if (point === "answer") await until(() => soon.mock.calls.length > 0);
    };
    await send(await asked(here), here);
    expect(soon).toHaveBeenCalledTimes(2);
    expect.assertions(2);
  });
});

describe("a key that the compute service refuses", () => {
  it.each([
    [false, "rejected Gatehouse's API key (401)"],
    [true, undefined],
  ])("freezes changes, unless there is a newer one: %s", async (hasNewKey, reason) => {
    await using here = await workerHere();
    const request = await asked(here);
    let [looks, apiKey] = [0, "key-of-last-year"];
    const compute = createCompute({
      baseUrl: here.compute.url,
      apiKey: () => apiKey,
      // The key is refreshed once before the call, and once after it was refused.
      refreshKey() {
        looks += 1;
        if (looks > 1 && hasNewKey) apiKey = "key-of-this-year";
      },
      timeoutMs: 60_000,
    });
    await send(request, { ...here, by: { ...here.by, compute } });
    await compute.close();
    expect(await here.by.store.get(request.record.id)).toMatchObject({ state: "rejected" });
    const freeze = await here.by.store.freezeState();
    expect(freeze?.reason).toEqual(reason && expect.stringContaining(reason));
  });
});
