import { describe, expect, it } from "vitest";
import { observeAlive } from "../../../src/queue/heartbeat.ts";
import { advance } from "../../../src/core/perform/perform.ts";
import { sweep } from "../../../src/core/perform/sweep.ts";
import { claimedBy, storeRequest, restartOf } from "../asking.ts";
import { type WorkerHere, workerHere } from "./worker-here.ts";

const minutes = 60_000;

/** Stores another worker's claim. Redis's clock was set ahead by `steppedMs` after it. */
async function sendingElsewhere(here: WorkerHere, steppedMs: number): Promise<string> {
  const { store } = here.by;
  const { approval: _none, ...plain } = restartOf(await here.vm("web-2"));
  const claimed = await claimedBy("w-other", await storeRequest(store, plain), store);
  const call = { ...claimed.stage.call, sentAt: (await store.now()) - steppedMs };
  await store.saveFacts(claimed, { ...claimed.stage, call });
  return claimed.record.id;
}

describe("a sender, judged by another worker", () => {
  it("is waited for while it lives, however far Redis' clock was stepped ahead", async () => {
    await using here = await workerHere();
    const id = await sendingElsewhere(here, 10 * minutes);
    expect(await advance(id, here.by)).toMatchObject({ kind: "wait" });
    expect((await here.by.store.get(id))?.state).toBe("sending");
  });

  it("is given up by the observer's own clock when it lives but doesn't end its call", async () => {
    await using here = await workerHere();
    const id = await sendingElsewhere(here, 0);
    await advance(id, here.by);
    const [claim = ""] = here.by.sendingSince.keys();
    here.by.sendingSince.set(claim, performance.now() - 10 * minutes);
    await advance(id, here.by);
    expect(await here.by.store.get(id)).toMatchObject({
      state: "unclear",
      stage: { call: { endedAt: expect.any(Number) as number } },
    });
    await sweep(here.by);
    expect([...here.by.sendingSince.keys()]).toEqual([]);
  });

  it("is gone only when its heartbeat stays away for longer than a live one takes to renew it", async () => {
    let at = 0;
    let beats = true;
    const isAlive = observeAlive(
      async () => beats,
      100,
      () => at,
    );
    expect(await isAlive("w")).toBe(true);
    beats = false;
    expect(await isAlive("w")).toBe(true);
    at += 199;
    expect(await isAlive("w")).toBe(true);
    beats = true;
    expect(await isAlive("w")).toBe(true);
    beats = false;
    at += 1;
    expect(await isAlive("w")).toBe(true);
    at += 200;
    expect(await isAlive("w")).toBe(false);
    // The heartbeat was missed long ago, and is missed now. It may have been there in between.
    at += 100_000;
    expect(await isAlive("w")).toBe(true);
  });
});
