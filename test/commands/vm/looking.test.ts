import { afterAll, describe, expect, it } from "vitest";
import { closeCharts } from "../../../src/charts/charts.ts";
import { hears, wordsOf } from "../../stories/words.ts";
import { startWorld, testPolicy, type TestWorld } from "../../support/start-world.ts";

const vmId = "vm-payments-web-2";

afterAll(() => closeCharts());

/** Types, and waits for the newest message with these words. */
async function interactions(world: TestWorld, text: string, words: RegExp) {
  await world.vera.types("ops", text);
  return hears(world.vera, "ops", words);
}

describe("/vm metrics", () => {
  it("answers the asker, and everybody with a picture and the same in words once it is shared", async () => {
    await using world = await startWorld();
    const shown = await interactions(
      world,
      "/vm metrics web-2",
      /CPU and memory of web-2, last 1h/,
    );
    expect(shown.ephemeral).toBe(true);
    expect(shown.text).toMatch(/^CPU and memory of web-2, last 1h\. Disk: [\d.]+\. CPU: minimum/);
    await world.vera.presses("Share in channel", { in: shown.ts });
    await world.vera.until(() => world.slack.workspace.files.size > 0);
    const shared = await hears(world.vera, "ops", /Shared by vera/);
    const picture = shared.blocks.find(({ type }) => type === "image");
    expect(picture).toMatchObject({
      alt_text: expect.stringMatching(/^CPU: minimum .* Memory: minimum .* Disk: [\d.]+\.$/),
      title: { text: "web-2" },
    });
    const [file] = world.slack.workspace.files.values();
    expect(file?.name).toBe("web-2.png");
    expect(file?.bytes?.subarray(1, 4).toString()).toBe("PNG");
  });

  it("hands any period on as it was written, and refuses only an endless one", async () => {
    await using world = await startWorld();
    await interactions(world, '/vm metrics web-2 "last full moon"', /last last full moon/);
    const asked = world.compute.calls().find(({ path }) => path.endsWith("/metrics"));
    expect(new URLSearchParams(asked?.query).get("period")).toBe("last full moon");
    await interactions(
      world,
      `/vm metrics web-2 ${"x".repeat(41)}`,
      /period must be at most 40 characters/,
    );
  });

  it("says it in a sentence when there are no samples", async () => {
    await using world = await startWorld();
    const shown = await interactions(
      world,
      "/vm metrics worker-1",
      /has no samples of CPU or memory for 1h/,
    );
    expect(shown.blocks.map(({ type }) => type)).toEqual([
      "section",
      "context",
      "actions",
      "actions",
    ]);
  });

  it("shows Slack's own chart to the asker, and text where Slack refuses that", async () => {
    await using world = await startWorld();
    const shown = await interactions(world, "/vm metrics web-2", /CPU and memory of web-2/);
    expect(shown.blocks.map(({ type }) => type)).toContain("data_visualization");
    world.slack.weather.add({
      method: "chat.postEphemeral",
      kind: "error",
      error: "invalid_blocks",
    });
    const text = await interactions(world, "/vm metrics web-2 6h", /last 6h[^]*▁/);
    expect(text.blocks.map(({ type }) => type)).not.toContain("data_visualization");
  });
});

describe("/vm attest", () => {
  it("verifies, fails on drift, and says when it can't know", async () => {
    await using world = await startWorld();
    const verified = await interactions(world, "/vm attest web-2", /Reported as verified: web-2/);
    expect(verified.ephemeral).toBe(true);
    expect(wordsOf(verified)).toContain("provider's claim");
    world.compute.edit.setMeasurement({ vm: vmId, reportOnly: true });
    const drifted = await interactions(world, "/vm attest web-2", /Failed: web-2/);
    expect(wordsOf(drifted)).toMatch(/The report's measurement is not the VM's.*bytes differ/s);
    await interactions(world, "/vm attest worker-1", /Could not verify: worker-1/);
  });

  it("compares with the pins of policy", async () => {
    const measurements = ["00".repeat(32)];
    await using world = await startWorld({
      policy: `${testPolicy}attestation: { pins: [{ targets: ["payments/*"], measurements: ${JSON.stringify(measurements)} }] }\n`,
    });
    const shown = await interactions(world, "/vm attest web-2", /Failed: web-2/);
    expect(wordsOf(shown)).toMatch(/matches no pin.*instead of 0000…0000/s);
  });

  it("gives the raw report as a file to whoever presses for it", async () => {
    await using world = await startWorld();
    await interactions(world, "/vm attest web-2", /Reported as verified: web-2/);
    await world.vera.presses("Raw report");
    await hears(world.vera, "ops", /is a file in your direct messages/);
    const [file] = await world.slack.until(() => {
      const files = [...world.slack.workspace.files.values()].filter(
        (one) => one.shares.length > 0,
      );
      return files.length > 0 && files;
    });
    expect(file?.name).toMatch(/^attestation-web-2-.*\.json$/);
    expect(JSON.parse(String(file?.bytes))).toMatchObject({
      vm: { id: vmId },
      report: { verified: true },
      appraisal: { verdict: "verified" },
    });
  });
});
