import { describe, expect, it } from "vitest";
import { notePolicy } from "../../src/audit/note-policy.ts";
import { auditOf } from "../requests/asking.ts";
import { testRedis } from "../support/with-redis.ts";

describe("a change of policy", () => {
  it("stands in the audit trail once, however many processes start with it; the first policy is no change", async () => {
    await using world = await testRedis();
    const { redis, key } = world;
    const started = async (version: string) =>
      Promise.all(Array.from({ length: 5 }, () => notePolicy(redis, key, version)));
    expect(await started("v1")).toEqual([false, false, false, false, false]);
    expect((await started("v2")).filter(Boolean)).toHaveLength(1);
    expect((await started("v2")).filter(Boolean)).toEqual([]);
    expect((await started("v1")).filter(Boolean)).toHaveLength(1);
    expect(await auditOf(redis, key("audit"))).toMatchObject([
      { what: "policy", from: "v1", to: "v2" },
      { what: "policy", from: "v2", to: "v1" },
    ]);
  });
});
