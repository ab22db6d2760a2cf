import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";

// In a process of its own: how much this one takes has other reasons
const busyTwice = `
  import { collectGarbage } from "./src/operate/node-process.ts";
  import { setTimeout as sleep } from "node:timers/promises";
  const heapMb = () => process.memoryUsage().heapTotal / 1024 / 1024;
  const busy = () => void Array.from({ length: 500_000 }, (_, n) => ({ n, text: "x" + n }));
  async function fallsBelow(mb) {
    for (let looks = 0; looks < 100 && heapMb() > mb; looks += 1) await sleep(50);
    return heapMb() <= mb;
  }
  busy();
  const grown = heapMb();
  collectGarbage(100);
  const first = await fallsBelow(grown / 2);
  busy();
  const again = heapMb() > grown / 2 && (await fallsBelow(grown / 2));
  process.stdout.write(JSON.stringify({ first, again }));
`;

it("gives back what starting took, and later what a busy time did, though that was no more than starting", async () => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "--eval", busyTwice],
    { timeout: 20_000 },
  );
  expect(JSON.parse(stdout)).toEqual({ first: true, again: true });
});
