import { describe, expect, it } from "vitest";
import { hears, wordsOf } from "./words.ts";
import { passQuiet } from "../support/pass-time.ts";
import { startWorld, testTiming } from "../support/start-world.ts";
import { until } from "../support/until.ts";

/** Olivia's team has payments and #ops, Amir's has ml and #vendor; #status tells of what is left. */
const policy = `access: { view: [], operate: ["U0ADA"], administer: ["U0ADA"] }
audit: { channel: C03AUDIT }
alerts: { channel: C02STATUS }
sharedChannels: [C07VENDOR]
teams:
  payments: { projects: ["payments"], operate: ["U0OLIVIA"], channel: C01OPS }
  ml: { projects: ["ml"], operate: ["U0AMIR", "U0VERA"], channel: C07VENDOR }
${testTiming}
`;

describe("two teams in one Gatehouse", () => {
  it("each hear of their own in their channels: alarms, subscriptions, unknown outcomes", async () => {
    await using world = await startWorld({ policy, pace: { inventoryRefreshMs: 300 } });
    const { olivia, amir, vera, ada } = world;
    await until(() => world.client.hlen(world.key("seen-statuses"))).toBeGreaterThan(2);

    // Both subscribe to everything: each channel hears about its own team's VMs only
    await olivia.types("ops", "/gatehouse subscribe * changes");
    await hears(
      olivia,
      "ops",
      /Gatehouse tells [^]* about[^]*changes\.[^]*3 VMs that this channel may see match/,
    );
    await vera.types("vendor", "/gatehouse subscribe *");
    await hears(vera, "vendor", /VMs that this channel may see match/);
    await vera.types("ops", "/gatehouse subscribe");
    await hears(vera, "ops", /You can't run \/gatehouse subscribe here: you can't see everything/);

    // A change requested elsewhere, and one where it is subscribed to
    await olivia.types("random", "/vm restart db-1");
    await hears(olivia, "ops", /✅ olivia restarted db-1 in \d+ s\. In payments\./);
    await olivia.types("ops", "/vm restart web-2");
    await world.settled();

    // Alarms
    world.compute.edit.setStatus({ vm: "vm-payments-web-1", status: "ERROR" });
    await hears(olivia, "ops", /web-1 in payments went to ERROR/);
    world.compute.edit.setStatus({ vm: "vm-ml-train-7", status: "RUNNING" });
    await hears(vera, "vendor", /train-7 in ml is no longer in ERROR: it is RUNNING/);
    const edge = world.compute.edit.addVm({ project: "staging", name: "edge-1" });
    world.compute.edit.setStatus({ vm: edge, status: "ERROR" });
    await hears(vera, "status", /edge-1 in staging went to ERROR/);

    // An outcome that nobody knows, asked for elsewhere
    world.compute.weather({ match: "POST /v1/vms/*/snapshot*", lost: "after" });
    await amir.types("random", "/vm snapshot train-7");
    await passQuiet(world);
    await hears(vera, "vendor", /Outcome unknown[^]*train-7[^]*amir requested it in/);

    // What stands in a channel, for everyone there
    const said = (channel: string) =>
      ada
        .seesChannel(channel)
        .messages.filter(({ ephemeral }) => !ephemeral)
        .map(wordsOf)
        .join("\n");
    expect(said("ops")).not.toMatch(/train|\bml\b|edge-1|staging|vault/);
    expect(said("vendor")).not.toMatch(/payments|db-1|web-|edge-1|staging/);
    expect(said("status")).not.toMatch(/payments|db-1|train|\bml\b/);
    // Where it was requested it isn't told once more
    expect(said("ops").match(/web-2/g)?.length).toBeGreaterThan(0);
    expect(said("ops")).not.toMatch(/web-2[^]*In payments, requested by/);
  });
});
