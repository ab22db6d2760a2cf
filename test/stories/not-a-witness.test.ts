import { describe, expect, it } from "vitest";
import { launchMeasurement } from "../../sandbox/compute/records.ts";
import { fleetOf, numbered, rollouts, touched } from "../features/rollouts/rollout-world.ts";
import { startWorld, testPolicy } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

const ended = /Restarted \d+ VMs|Restart of \d+ VMs was stopped/;

/** A fleet whose third VM is pinned to what it measures at first. */
async function pinnedFleet(vms: number) {
  const pin = launchMeasurement("vm-0000-002 v1", 4);
  const world = await startWorld({
    ...fleetOf(vms),
    policy: `${testPolicy}attestation: { pins: [{ targets: ["vm-0000-002"], measurements: ["${pin}"] }] }\n`,
  });
  return { ...world, third: world.compute.edit.findVm("vm-0000-002") };
}

describe("a VM of which the compute service says that attestation is off, and that is pinned", () => {
  it("stops a rollout before it is touched, and has its line after a restart", async () => {
    await using world = await pinnedFleet(4);
    world.third.attested = false;
    await rollouts(world.olivia, "/vm restart vm-0000-*", { "roll:number": "4" });
    const end = wordsOf(await hears(world.olivia, "ops", ended));
    expect(end).toContain(
      "was stopped before vm-0000-002: attestation is not enabled for this VM, says the compute service, but it is pinned",
    );
    expect(touched(world)).toEqual(numbered(0, 2));
    await world.olivia.types("ops", "/vm restart vm-0000-002");
    await hears(world.olivia, "ops", /Restarted vm-0000-002/);
    await hears(
      world.olivia,
      "ops",
      /^✅ <@U0OLIVIA> [^]*Attestation: .*not enabled for this VM, .* but it is pinned/,
    );
  });

  it("stops a rollout that has just restarted it", async () => {
    await using world = await pinnedFleet(4);
    void world.compute.called("POST /v1/vms/vm-0000-002/restart").then(() => {
      world.third.attested = false;
    });
    await rollouts(world.olivia, "/vm restart vm-0000-*", { "roll:number": "4" });
    const third = await until(async () =>
      (await world.store.getMany(await world.store.recentIds({}, 10))).find(
        ({ record, state }) => record.target.name === "vm-0000-002" && state === "done",
      ),
    );
    // Its evidence may come late: as if it had been waited for
    const longAgo = third.changedAt - 3 * 60_000;
    await world.client.hset(world.key("request", third.record.id), "changedAt", longAgo);
    const end = wordsOf(await hears(world.olivia, "ops", ended));
    expect(end).toContain("attestation could not be verified: attestation is not enabled");
    expect(touched(world)).toEqual(numbered(0, 3));
  });
});

describe("evidence that can't be parsed, where the policy asks for none", () => {
  it("stops no rollout: text, a report that is cut, or no base64", async () => {
    await using world = await startWorld(fleetOf(3));
    const broken = ["see attachment", "AAAA".repeat(20), "§§§"];
    for (const [n, vm] of numbered(0, 3).entries())
      world.compute.edit.findVm(vm).replayed = broken[n];
    await rollouts(world.olivia, "/vm restart vm-0000-*", { "roll:number": "3" });
    expect(wordsOf(await hears(world.olivia, "ops", ended))).toContain("Restarted 3 VMs");
    expect(touched(world)).toEqual(numbered(0, 3));
  });
});
