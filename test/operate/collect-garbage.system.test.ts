import { expect, it } from "vitest";
import { startNode } from "../support/start-program.ts";
import { until } from "../support/until.ts";

// In a process of its own: how much this one takes has other reasons
const busyTwice = `
  import { collectGarbage } from "./src/operate/node-process.ts";
  import { setTimeout as sleep } from "node:timers/promises";
  const heapMb = () => process.memoryUsage().heapTotal / 1024 / 1024;
  const busy = () => void Array.from({ length: 500_000 }, (_, n) => ({ n, text: "x" + n }));
  async function fallsBelow(mb) {
    while (heapMb() > mb) await sleep(50);
  }
  busy();
  const grown = heapMb();
  collectGarbage(100);
  await fallsBelow(grown / 2);
  console.log("fell");
  busy();
  if (heapMb() <= grown / 2) throw new Error("it didn't grow again");
  await fallsBelow(grown / 2);
  console.log("fell again");
`;

it("memory that starting took is given back, and later what a busy time did, though that was no more than starting", async () => {
  await using program = startNode(["--input-type=module", "--eval", busyTwice], {});
  await until(program.output).toContain("fell\n");
  await until(program.output).toContain("fell again\n");
  expect(await program.ended).toBe(0);
});
