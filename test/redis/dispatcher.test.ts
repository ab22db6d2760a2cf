import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { createLog } from "../../src/log/log.ts";
import { startDispatcher } from "../../src/redis/dispatcher.ts";
import { createDueList } from "../../src/redis/due-list.ts";
import { testRedis } from "../support/with-redis.ts";

/** A due list, and a process that works on it. */
async function working(handle: (id: string) => Promise<number | undefined>) {
  const { redis, key, [Symbol.asyncDispose]: dispose } = await testRedis();
  const due = createDueList(redis, key("list"));
  const lines: string[] = [];
  const dispatcher = startDispatcher(
    [{ name: "thing", of: "thing", due, atOnce: 2, visibilityTimeoutMs: () => 300, handle }],
    { everyMs: () => 10_000, log: createLog({ level: "info", write: (line) => lines.push(line) }) },
  );
  const put = async (id: string, inMs = 0) => {
    await due.later(id, inMs);
    due.ring(id);
  };
  return {
    due,
    put,
    lines,
    dispatcher,
    async [Symbol.asyncDispose]() {
      await dispatcher.close(1_000);
      await dispose();
    },
  };
}

it("does at once what this process puts on the list, a few at a time, and none twice at the same time", async () => {
  const hang = Promise.withResolvers<void>();
  const begun: string[] = [];
  await using here = await working(async (id) => {
    begun.push(id);
    await hang.promise;
    await here.due.remove(id);
    return undefined;
  });
  for (const id of ["a", "b", "c"]) await here.put(id);
  await expect.poll(() => begun).toEqual(["a", "b"]);
  await here.put("a");
  await sleep(50);
  expect(begun).toEqual(["a", "b"]);
  hang.resolve();
  // Put on the list again while it was in hand: done once more
  await expect.poll(() => begun.toSorted()).toEqual(["a", "a", "b", "c"]);
  await expect.poll(() => here.due.depth()).toBe(0);
});

it("comes back to what is due later, and to what failed after the visibility timeout", async () => {
  const times: string[] = [];
  await using here = await working(async (id) => {
    times.push(id);
    if (id === "fails" && times.length === 1) throw new Error("broken");
    if (times.length < 3) {
      await here.due.later(id, 30);
      return 30;
    }
    await here.due.remove(id);
    return undefined;
  });
  await here.put("fails");
  await expect.poll(() => times).toEqual(["fails"]);
  await here.put("other", 400);
  await expect.poll(() => times.length, { timeout: 3_000 }).toBeGreaterThanOrEqual(3);
  expect(here.lines.join("")).toContain("thing.failed");
});

it("waits for what is in hand when it closes, and takes nothing more", async () => {
  const hang = Promise.withResolvers<void>();
  const ended: string[] = [];
  await using here = await working(async (id) => {
    await hang.promise;
    ended.push(id);
    return undefined;
  });
  await here.put("a");
  await sleep(50);
  const closed = here.dispatcher.close(2_000);
  await here.put("b");
  hang.resolve();
  await closed;
  expect(ended).toEqual(["a"]);
});
