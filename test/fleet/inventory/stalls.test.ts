import { expect, it } from "vitest";
import { longestTurnMs, longestTurns } from "../../bench/inventory.ts";
import { testRedis } from "../../support/with-redis.ts";

it("100,000 VMs that are read, written, loaded, and searched never hold up the event loop", async () => {
  await using at = await testRedis();
  const turns = await longestTurns(at);
  expect(turns.length).toBeGreaterThan(8);
  expect(turns.filter(({ ms }) => ms > longestTurnMs)).toEqual([]);
}, 60_000);
