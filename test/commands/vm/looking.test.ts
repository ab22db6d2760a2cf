import { afterAll, describe, expect, it } from "vitest";
import { closeCharts } from "../../../src/charts/charts.ts";
import { hears } from "../../stories/words.ts";
import { startWorld, type TestWorld } from "../../support/start-world.ts";

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
