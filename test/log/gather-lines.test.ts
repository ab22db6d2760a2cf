import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { gatherLines } from "../../src/log/gather-lines.ts";
import { createLog } from "../../src/log/log.ts";

function logging() {
  const written: string[] = [];
  const lines = gatherLines((text) => written.push(text));
  const log = createLog({ level: "debug", write: lines.write });
  const events = () =>
    written.map((text) => [...text.matchAll(/"event":"(.*?)"/g)].map(([, e]) => e));
  return { lines, log, events };
}

it("writes what is usual together, within a moment", async () => {
  const { log, events } = logging();
  log.info("one");
  log.debug("two");
  expect(events()).toEqual([]);
  await expect.poll(events).toEqual([["one", "two"]]);
  log.info("three");
  await expect.poll(events).toEqual([["one", "two"], ["three"]]);
});

it.each(["warn", "error"] as const)("writes at once at level %s, in order", async (level) => {
  const { log, events } = logging();
  log.info("before");
  log[level]("now");
  expect(events()).toEqual([["before", "now"]]);
  await sleep(150);
  expect(events()).toHaveLength(1);
});

it("loses nothing when it is told that the process ends", () => {
  const { lines, log, events } = logging();
  log.info("last");
  lines.flush();
  lines.flush();
  expect(events()).toEqual([["last"]]);
});
