import { describe, expect, it } from "vitest";
import { describeSeen } from "../../sandbox/slack/describe-seen.ts";
import { startWorld, testPolicy } from "../support/start-world.ts";
import { until } from "../support/until.ts";

const many = 40;

describe("the kill switch", () => {
  it("pulled by an approver in the middle of 40 changes ends all sending within a second; only an administrator releases it", async () => {
    await using world = await startWorld({
      policy: `${testPolicy}limits: { requestsPerMinute: 1000 }\n`,
      compute: { world: { projects: 1, vmsPerProject: many }, transitionMs: 150 },
    });
    const names = Array.from({ length: many }, (_, n) => `vm-0000-${String(n).padStart(3, "0")}`);
    const restart = async (some: readonly string[]) => {
      for (const name of some) await world.olivia.types("ops", `/vm restart ${name}`);
    };
    const typing = restart(names.slice(0, many / 2));
    await world.compute.called("POST /v1/vms/{vm_id}/restart", 3);
    await world.amir.types("random", "/gatehouse freeze the storage is failing");
    await world.amir.until((seen) => describeSeen(seen).includes("All changes are frozen"));
    const { at: pulledAt = 0 } = (await world.store.freezeState()) ?? {};
    await typing;
    await restart(names.slice(many / 2));
    const requests = async () => world.store.getMany(await world.store.recentIds({}, 200));
    // What was said of each comes later: Slack takes one message a second
    const isOver = async () => (await requests()).every(({ final }) => final);
    const refusals = () =>
      world.olivia
        .seesChannel("ops")
        .messages.filter(({ text }) => text.startsWith("All changes are frozen by amir")).length;
    // An ack comes before its request, and before a refusal
    await until(async () => (await requests()).length + refusals()).toBe(many);
    await until(isOver).toBe(true);
    const sends = world.compute.writes().map(({ at }) => at);
    expect(sends.filter((at) => at > pulledAt + 1000)).toEqual([]);
    const all = await requests();
    const stopped = all.filter(({ state }) => state === "cancelled");
    expect(refusals()).toBeGreaterThanOrEqual(many / 2);
    expect(sends.length + stopped.length).toBe(all.length);
    // Who pulled it can't release it
    await world.amir.types("random", "/gatehouse thaw");
    await world.amir.until((seen) => describeSeen(seen).includes("Only ada can run"));
    await world.olivia.types("ops", "/vm restart vm-0000-000");
    await until(isOver).toBe(true);
    expect(world.compute.writes()).toHaveLength(sends.length);
    await world.ada.types("random", "/gatehouse thaw");
    await world.ada.until((seen) => describeSeen(seen).includes("Changes are allowed again"));
  });
});
