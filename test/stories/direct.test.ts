import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startWorld, testPolicy, type TestWorld } from "../support/start-world.ts";
import { hears, wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

const policy = `${testPolicy}approvals: [{ operations: ["vm.stop"], required: 1, expires: 1m }]\n`;

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({ policy });
});
afterAll(async () => {
  await world.close();
});

/** Writes to Gatehouse itself, and waits for its answer there. */
async function says(text: string, words: RegExp) {
  await world.olivia.types("gatehouse", text);
  return hears(world.olivia, "gatehouse", words);
}

describe("a direct message to Gatehouse", () => {
  it("takes the same words and answers there, for good, with charts and slash commands in its hints", async () => {
    const shown = await says("vm show web-2", /web-2 is RUNNING/);
    expect(shown.ephemeral).toBe(false);
    expect(wordsOf(shown)).not.toContain("[Share in channel]");
    const chart = await says("vm metrics web-2", /CPU and memory of web-2/);
    expect(chart.blocks.map(({ type }) => type)).toContain("data_visualization");
    const unknown = await says("vm show nothing-like-it", /There is no VM called nothing-like-it/);
    expect(wordsOf(unknown)).toContain("/vm list shows every VM");
  });

  it("only proposes a change: the press is the request, and its message comes there", async () => {
    const offer = await says("restart web-2", /Restart web-2\? Press the button/);
    expect(world.compute.writes()).toEqual([]);
    await world.olivia.presses("Restart", { in: offer.ts });
    await hears(world.olivia, "gatehouse", /Restarted web-2 in/);
    expect(world.compute.writes()).toHaveLength(1);
  });

  it("asks for approval where others see it", async () => {
    const offer = await says("vm stop web-2", /Stop web-2\? Press the button/);
    await world.olivia.presses("Stop", { in: offer.ts });
    const card = await hears(
      world.amir,
      "status",
      /Stop web-2 in payments[^]*Waiting for approval/,
    );
    // From his own list as well: nobody else reads what he writes to Gatehouse
    await world.amir.types("gatehouse", "gatehouse approvals");
    const list = await hears(world.amir, "gatehouse", /1 request waits for your approval/);
    await world.amir.presses("Approve", { in: list.ts });
    expect(card.ephemeral).toBe(false);
    await hears(world.olivia, "status", /Stopped web-2 in/);
  });

  it("is the same words with a file, politely, and in bold", async () => {
    const sees = () => world.olivia.seesChannel("gatehouse").messages.length;
    for (const [text, options] of [
      ["vm show db-1", { file: "graph.png" }],
      ["hey gatehouse, could you *vm show db-1*?", {}],
    ] as const) {
      const before = sees();
      await world.olivia.types("gatehouse", text, options);
      const last = () => world.olivia.seesChannel("gatehouse").messages.slice(before);
      await until(() => last().map(wordsOf).join("\n")).toContain("db-1 is RUNNING");
    }
  });

  it("is nobody else's: what a bot writes, or nothing at all, is no command", async () => {
    const before = world.olivia.seesChannel("gatehouse").messages.length;
    await world.olivia.types("gatehouse", "   ");
    await says("vm list", /8 VMs/);
    expect(world.olivia.seesChannel("gatehouse").messages).toHaveLength(before + 3);
  });
});
