import { describe, expect, it } from "vitest";
import { describeSeen } from "../../sandbox/slack/describe-seen.ts";
import { startWorld } from "../support/start-world.ts";
import { until } from "../support/until.ts";

/** So many are typed before the switch is pulled, and of these so many are sent by then. */
const [before, sent, after] = [8, 3, 4];

describe("the kill switch", () => {
  it("pulled by an approver in the middle of changes ends all sending, even of those that may go; only an administrator releases it", async () => {
    const { promise: pulled, resolve: goOn } = Promise.withResolvers<void>();
    let gated = 0;
    await using world = await startWorld({
      compute: { world: { projects: 1, vmsPerProject: before + after } },
      at: async (point) => {
        // The others are between the gate and their claim while the switch is pulled
        if (point === "gated" && (gated += 1) > sent) await pulled;
      },
    });
    const restart = async (from: number, to: number) => {
      for (let n = from; n < to; n += 1)
        await world.olivia.types("ops", `/vm restart vm-0000-${String(n).padStart(3, "0")}`);
    };
    const requests = async () => world.store.getMany(await world.store.recentIds({}, 200));
    const writes = () => world.compute.writes().length;
    const refusals = () =>
      world.olivia
        .seesChannel("ops")
        .messages.filter(({ text }) => text.startsWith("All changes are frozen by amir")).length;
    await restart(0, before);
    await until(async () => (await requests()).length).toBe(before);
    await until(() => gated).toBeGreaterThan(sent);
    await until(writes).toBe(sent);
    await world.amir.types("random", "/gatehouse freeze the storage is failing");
    await world.amir.until((seen) => describeSeen(seen).includes("All changes are frozen"));
    goOn();
    await restart(before, before + after);
    await until(refusals).toBe(after);
    const all = await world.settled();
    expect(all.filter(({ state }) => state === "done")).toHaveLength(sent);
    expect(all.filter(({ state }) => state === "cancelled")).toHaveLength(before - sent);
    // Who pulled it can't release it
    await world.amir.types("random", "/gatehouse thaw");
    await world.amir.until((seen) => describeSeen(seen).includes("Only ada can run"));
    await restart(0, 1);
    await until(refusals).toBe(after + 1);
    await world.settled();
    expect(writes()).toBe(sent);
    await world.ada.types("random", "/gatehouse thaw");
    await world.ada.until((seen) => describeSeen(seen).includes("Changes are allowed again"));
  });
});
