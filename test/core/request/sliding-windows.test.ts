import { describe, expect, it } from "vitest";
import { createSlidingWindows } from "../../../src/core/request/sliding-windows.ts";
import { testRedis } from "../../support/with-redis.ts";

const hour = { windowMs: 3_600_000, most: 1 };

describe("a place in a sliding window", () => {
  it("is looked at without being taken", async () => {
    await using here = await testRedis();
    const windows = createSlidingWindows(here.redis, here.key);
    const places = here.key("rate", "destructivePerHour");
    expect(await windows.waitFor(places, "", { ...hour, onlyLooks: true })).toBe(0);
    expect(await windows.waitFor(places, "r-1", hour)).toBe(0);
    expect(await windows.waitFor(places, "r-1", hour)).toBe(0);
    expect(await windows.waitFor(places, "", { ...hour, onlyLooks: true })).toBeGreaterThan(0);
  });

  it("is given back by what is over, whose state the hash of its kind has", async () => {
    await using here = await testRedis();
    const windows = createSlidingWindows(here.redis, here.key);
    const places = here.key("rate", "api", "open ci");
    const proposals = {
      ...hour,
      holderKind: "proposal" as const,
      isOver: (state: string) => state !== "open",
    };
    await here.redis.hset(here.key("proposal", "p-1"), "state", "open");
    expect(await windows.waitFor(places, "p-1", proposals)).toBe(0);
    expect(await windows.waitFor(places, "p-2", proposals)).toBeGreaterThan(0);
    await here.redis.hset(here.key("proposal", "p-1"), "state", "dismissed");
    expect(await windows.waitFor(places, "p-2", proposals)).toBe(0);
  });

  it("waits for its request to be stored", async () => {
    await using here = await testRedis();
    const windows = createSlidingWindows(here.redis, here.key);
    const places = here.key("rate", "drafts", "U0OLIVIA");
    const drafts = { ...hour, isOver: (state: string) => state !== "draft" };
    expect(await windows.waitFor(places, "r-1", drafts)).toBe(0);
    expect(await windows.waitFor(places, "r-2", drafts)).toBeGreaterThan(0);
  });
});
