import { describe, expect, it } from "vitest";
import { watch } from "../../src/requests/watch.ts";
import { ask, restartOf, vmTarget } from "./asking.ts";
import { type WorkerHere, workerHere } from "./worker-here.ts";

const watchKey = "vms/prj-payments";

/** Restarts of this many VMs of one project that the service has accepted just now. */
async function accepted(here: WorkerHere, many: number): Promise<void> {
  const { store } = here.by;
  for (let n = 0; n < many; n++) {
    const { approval: _none, ...submission } = restartOf(vmTarget(`web-${n + 1}`));
    const asked = await ask(store, submission);
    const sent = await store.move(asked, {
      state: "sending",
      progress: { sentAt: await store.now() },
      why: "claimed",
    });
    if (sent.is !== "moved") throw new Error(sent.is);
    await store.move(sent.request, {
      state: "accepted",
      progress: { ...sent.request.progress, answer: { class: "accepted" } },
      why: "the service said 202",
    });
  }
}

const reads = (here: WorkerHere) => here.compute.calls().length;

describe("the poll that requests of a project share", () => {
  it("is one read for all, and comes no sooner however often it is rung for", async () => {
    await using here = await workerHere();
    await accepted(here, 60);
    const first = await watch(watchKey, 1, here.by);
    expect(first.is).toBe("wait");
    expect(reads(here)).toBe(1);
    for (let rings = 0; rings < 5; rings++) {
      const next = await watch(watchKey, 2, here.by);
      if (next.is !== "wait") throw new Error("they still wait");
      expect(next.ms).toBeGreaterThan(0);
      expect(next.ms).toBeLessThanOrEqual(here.by.policy.timing.pollFirstMs);
    }
    expect(reads(here)).toBe(1);
    const look = async () => (await watch(watchKey, 2, here.by), reads(here));
    await expect.poll(look, { timeout: 5000 }).toBe(2);
  });

  it("keeps two together waiting for a moment only", async () => {
    await using here = await workerHere();
    await accepted(here, 2);
    await watch(watchKey, 1, here.by);
    const next = await watch(watchKey, 2, here.by);
    if (next.is !== "wait") throw new Error("they still wait");
    if (reads(here) === 1) expect(next.ms).toBeLessThanOrEqual(40);
  });

  it("looks whenever it is rung for when one waits alone: a short reboot is its only proof", async () => {
    await using here = await workerHere();
    await accepted(here, 1);
    for (let rings = 1; rings <= 3; rings++) {
      await watch(watchKey, rings, here.by);
      expect(reads(here)).toBe(rings);
    }
  });
});
