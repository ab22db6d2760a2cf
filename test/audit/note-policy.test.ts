import { describe, expect, it } from "vitest";
import { isOlderPolicy, adoptPolicy } from "../../src/audit/policies.ts";
import { auditOf } from "../requests/asking.ts";
import { testRedis } from "../support/with-redis.ts";

describe("a change of policy", () => {
  it("stands in the audit trail once, however many processes start with it; the first policy is no change", async () => {
    await using world = await testRedis();
    const { redis, key } = world;
    const started = async (version: string) =>
      Promise.all(
        Array.from({ length: 5 }, async () => (await adoptPolicy(redis, key, version)).isNew),
      );
    expect(await started("v1")).toEqual([false, false, false, false, false]);
    expect((await started("v2")).filter(Boolean)).toHaveLength(1);
    expect((await started("v2")).filter(Boolean)).toEqual([]);
    expect((await started("v1")).filter(Boolean)).toHaveLength(1);
    expect(await auditOf(redis, key("audit"))).toMatchObject([
      { what: "policy", from: "v1", to: "v2" },
      { what: "policy", from: "v2", to: "v1" },
    ]);
  });

  it("supersedes those adopted before, also the one that a version without an order left, until it comes back", async () => {
    await using world = await testRedis();
    const { redis, key } = world;
    await redis.set(key("policy", "version"), "v0");
    for (const version of ["v1", "v2"]) await adoptPolicy(redis, key, version);
    const isOlder = (version: string, ours: string) => isOlderPolicy(redis, key, version, ours);
    expect(await isOlder("v0", "v2")).toBe(true);
    expect(await isOlder("v1", "v2")).toBe(true);
    expect(await isOlder("v2", "v1")).toBe(false);
    expect(await isOlder("unknown", "v2")).toBe(false);
    await adoptPolicy(redis, key, "v1");
    expect(await isOlder("v2", "v1")).toBe(true);
  });
});
