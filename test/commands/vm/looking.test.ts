import { describe, expect, it } from "vitest";
import { hears } from "../../stories/words.ts";
import { startWorld, type TestWorld } from "../../support/start-world.ts";

/** Types, and waits for the newest message with these words. */
async function interactions(world: TestWorld, text: string, words: RegExp) {
  await world.vera.types("ops", text);
  return hears(world.vera, "ops", words);
}

describe("/vm metrics", () => {
  it("answers the asker with a chart and the same in words, and everybody once it is shared", async () => {
    await using world = await startWorld();
    const shown = await interactions(
      world,
      "/vm metrics web-2",
      /CPU and memory of web-2, last 1h/,
    );
    expect(shown.ephemeral).toBe(true);
    expect(shown.text).toMatch(
      /^CPU and memory of web-2, last 1h\. CPU: minimum .* Disk: [\d.]+\.$/,
    );
    const chartsOf = ({ blocks }: typeof shown) =>
      blocks.filter(({ type }) => type === "data_visualization");
    expect(chartsOf(shown)).toMatchObject([{ title: "web-2, last 1h" }]);
    await world.vera.presses("Share in channel", { in: shown.ts });
    const shared = await hears(world.vera, "ops", /Shared by vera/);
    expect(shared.ephemeral).toBe(false);
    expect(chartsOf(shared)).toMatchObject([{ title: "web-2, last 1h" }]);
    expect(shared.text).toMatch(/CPU: minimum .* Memory: minimum .* Disk: [\d.]+\.$/);
    expect(world.slack.workspace.files.size).toBe(0);
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
    expect(shown.blocks.map(({ type }) => type)).toEqual(["section", "actions", "actions"]);
  });

  it("says it in words where Slack refuses the chart, to the asker and in the channel", async () => {
    await using world = await startWorld();
    const isInWords = ({ blocks }: { blocks: readonly { type: string }[] }) =>
      blocks.every(({ type }) => type !== "data_visualization");
    const refusals = [
      { method: "response_url", kind: "error", error: "invalid_blocks", times: 1 },
      { method: "chat.postEphemeral", kind: "error", error: "invalid_blocks", times: 1 },
      { method: "chat.postMessage", kind: "error", error: "invalid_blocks", times: 1 },
    ] as const;
    for (const storm of refusals) world.slack.weather.add(storm);
    const text = await interactions(world, "/vm metrics web-2 6h", /last 6h[^]*[▁-█] CPU: /);
    expect(text.ephemeral).toBe(true);
    expect(isInWords(text)).toBe(true);
    await world.vera.presses("Share in channel", { in: text.ts });
    const shared = await hears(world.vera, "ops", /[▁-█] CPU: [^]*Shared by vera/);
    expect(shared.ephemeral).toBe(false);
    expect(isInWords(shared)).toBe(true);
  });
});
