import { describe, expect, it } from "vitest";
import { startWorld } from "../support/start-world.ts";
import { passQuiet, seenUnderWay } from "../support/pass-time.ts";
import { until } from "../support/until.ts";
import { hears, wordsOf } from "./words.ts";

describe("restarting a VM from Slack", () => {
  it("calls restart once, waits until the VM runs again, and tells the story in one card and one result", async () => {
    await using world = await startWorld();
    world.slack.forgetCalls();
    // It restarts until Gatehouse has seen and told it
    world.compute.weather({ match: "POST /v1/vms/*/restart", stuck: true, via: "REBOOTING" });
    const typed = await world.olivia.types("ops", "/vm restart web-2");
    expect(typed.acked).toBe(true);
    await seenUnderWay(world);
    await hears(world.olivia, "ops", /Restart/);
    world.compute.edit.setStatus({ vm: "vm-payments-web-2", status: "RUNNING" });
    const request = await world.ended();
    expect(request.state).toBe("done");
    expect(world.compute.writes()).toMatchObject([
      { method: "POST", path: "/v1/vms/vm-payments-web-2/restart" },
    ]);
    expect(world.slack.callCounts()["chat.postMessage"]).toBe(2);
    const [card, result] = world.olivia.seesChannel("ops").messages;
    for (const message of [card, result])
      expect(message?.text).toMatch(/^✅ Restarted web-2 in [^.]+\.$/);
    // The sentence is read once: below it stands the proof
    expect(card && wordsOf(card)).toMatch(
      /^✅ Restarted web-2 in [^.]+\.\nin payments · requested by olivia at [\d:]+ [AP]M UTC · r-/,
    );
    expect(result && wordsOf(result)).toMatch(
      /^✅ <@U0OLIVIA> web-2 runs again\. Sent [\d:]+ [AP]M UTC, REBOOTING seen [\d:]+ [AP]M UTC, RUNNING read [\d:]+ [AP]M UTC\./,
    );
    expect(world.olivia.mentions()).toHaveLength(1);
  });
});

describe("a change while no worker runs", () => {
  it("says so on its card at once, and starts when a worker does", async () => {
    await using world = await startWorld({ roles: ["gateway"] });
    await world.olivia.types("ops", "/vm restart web-2");
    await hears(
      world.olivia,
      "ops",
      /Requested\. No worker is running; it starts as soon as one does\./,
    );
    expect(world.compute.writes()).toEqual([]);
    await world.startProcess("worker");
    await hears(world.olivia, "ops", /Restarted web-2 in/);
  });
});

describe("a service that dates its VMs anew for whatever happens to them", () => {
  const dated = () => startWorld({ compute: { withUpdatedAt: true } });

  it("doesn't prove a restart whose call was cut by an edited label", async () => {
    await using world = await dated();
    world.compute.weather({ match: "POST /v1/vms/*/restart", lost: "before", times: 1 });
    await world.olivia.types("ops", "/vm restart web-2");
    await until(
      async () => (await world.store.getMany(await world.store.openIds()))[0]?.state,
    ).toBe("unclear");
    world.compute.edit.setStatus({ vm: "payments/web-2", status: "RUNNING" });
    await passQuiet(world);
    await hears(world.olivia, "ops", /Outcome unknown/);
    expect(world.compute.writes()).toHaveLength(1);
  });

  it("tells a restart as done only once it was seen, however long the service queues it", async () => {
    await using world = await dated();
    world.compute.weather({ match: "POST /v1/vms/*/restart", stuck: true, via: null, times: 1 });
    await world.olivia.types("ops", "/vm restart web-2");
    const reads = () => world.compute.calls().filter(({ path }) => path.endsWith("web-2")).length;
    await world.compute.called("POST /v1/vms/*/restart");
    const before = reads();
    await until(reads).toBeGreaterThan(before + 10);
    const states = await world.store.getMany(await world.store.openIds());
    expect(states.map(({ state }) => state)).toEqual(["accepted"]);
    world.compute.edit.setStatus({ vm: "payments/web-2", status: "REBOOTING" });
    await seenUnderWay(world);
    world.compute.edit.setStatus({ vm: "payments/web-2", status: "RUNNING" });
    expect((await world.ended()).state).toBe("done");
  });
});

it("a list that writes times without the fraction that a record has shows no other VM", async () => {
  const createdAt = "2026-11-01T10:00:00";
  await using world = await startWorld({
    prepare(compute) {
      const dated = (match: string, created_at: string) =>
        compute.weather({ match, extra: { created_at } });
      dated("GET /v1/projects/:id/vms", `${createdAt}Z`);
      dated("GET /v1/vms/*", `${createdAt}.417Z`);
    },
  });
  await world.olivia.types("ops", "/vm restart web-2");
  expect((await world.ended()).state).toBe("done");
});
