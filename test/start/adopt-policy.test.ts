import { describe, expect, it } from "vitest";
import { isOlderPolicy, readPolicySigns } from "../../src/audit/policy-order.ts";
import { describeEntry } from "../../src/audit/render.ts";
import { adoptPolicy } from "../../src/start/policy-keeper.ts";
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
    expect(await auditOf(redis, key("audit"))).toMatchObject([
      { what: "policy", from: "v1", to: "v2" },
    ]);
  });

  it("supersedes those adopted before, until one comes back", async () => {
    await using world = await testRedis();
    const { redis, key } = world;
    for (const version of ["v0", "v1", "v2"]) await adoptPolicy(redis, key, version);
    const isOlder = (version: string, ours: string) => isOlderPolicy(redis, key, version, ours);
    expect(await isOlder("v0", "v2")).toBe(true);
    expect(await isOlder("v1", "v2")).toBe(true);
    expect(await isOlder("v2", "v1")).toBe(false);
    expect(await isOlder("unknown", "v2")).toBe(false);
    await adoptPolicy(redis, key, "v1", { from: 3 });
    expect(await isOlder("v2", "v1")).toBe(true);
  });
});

describe("a process whose policy changes", () => {
  it("supersedes the others with what is new to them, and with what it brings back", async () => {
    await using world = await testRedis();
    const { redis, key } = world;
    const adopt = (version: string, from: number) => adoptPolicy(redis, key, version, { from });
    expect(await adopt("v1", 0)).toMatchObject({ isNew: false, number: 1 });
    expect(await adopt("v2", 1)).toMatchObject({ isNew: true, number: 2 });
    expect(await adopt("v1", 2)).toMatchObject({ isNew: true, number: 3 });
    expect(await readPolicySigns(redis, key)).toMatchObject({
      current: { version: "v1", number: 3 },
    });
  });

  it("only follows them with what they have had already: a late file must not undo a newer one", async () => {
    await using world = await testRedis();
    const { redis, key } = world;
    const adopt = (version: string, from: number) => adoptPolicy(redis, key, version, { from });
    await adopt("v1", 0);
    await adopt("v2", 1);
    await adopt("v3", 2);
    const current = { version: "v3", number: 3 };
    // From the first to the second, while the others have the third
    expect(await adopt("v2", 1)).toEqual({ isNew: false, number: 2, current });
    // Started again with the file that it had, or in a new directory with an old file
    expect(await adopt("v1", 0)).toEqual({ isNew: false, number: 1, current });
    expect(await adopt("v3", 2)).toMatchObject({ isNew: false, number: 3, current });
  });

  it("stands in the audit trail with what it changes", async () => {
    await using world = await testRedis();
    const { redis, key } = world;
    await adoptPolicy(redis, key, "v1");
    await adoptPolicy(redis, key, "v2", { from: 1, changes: ["protect: added vault-*"] });
    const [record] = await auditOf(redis, key("audit"));
    expect(record).toMatchObject({ from: "v1", to: "v2", changes: ["protect: added vault-*"] });
    expect(describeEntry({ id: "1-0", at: 0, record: record ?? {} }).slice(2)).toEqual([
      "policy",
      "",
      "v1 → v2: protect: added vault-*",
    ]);
  });
});
