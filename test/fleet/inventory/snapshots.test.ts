import { describe, expect, it } from "vitest";
import { createSnapshots } from "../../../src/fleet/inventory/snapshots.ts";
import { garbage } from "../../support/only-whole.ts";
import { testRedis } from "../../support/with-redis.ts";

describe("the snapshots that Gatehouse remembers", () => {
  it("are forgotten 90 days after their VM was last seen, with their IDs", async () => {
    await using at = await testRedis();
    const { redis, key } = at;
    const snapshots = createSnapshots(redis, key);
    const of = (vmId: string) => ({
      id: `snap-of-${vmId}`,
      name: "nightly",
      vmId,
      vmName: vmId,
      projectId: "p",
      by: "U1",
      at: 1,
    });
    for (const vmId of ["here", "gone", "expired", "unseen"]) await snapshots.remember(of(vmId));
    await snapshots.remember({ ...of("nameless"), id: "" });
    const days = async (vmId: string) => (await redis.pttl(key("snapshots", vmId))) / 86_400_000;
    for (const vmId of ["here", "gone", "expired", "nameless"])
      expect(Math.ceil(await days(vmId)), vmId).toBe(90);
    await redis.pexpire(key("snapshots", "here"), 1_000_000);
    await redis.pexpire(key("snapshots", "gone"), 1_000_000);
    await redis.del(key("snapshots", "expired"));
    // As a process left it that died right after it stored them
    await redis.persist(key("snapshots", "unseen"));
    await snapshots.keepSeen(["here"]);
    expect(Math.ceil(await days("here"))).toBe(90);
    expect(await days("gone")).toBeLessThan(1);
    expect(Math.ceil(await days("unseen"))).toBe(90);
    expect(await snapshots.ownerOf("snap-of-expired")).toBeUndefined();
    expect(await snapshots.ownerOf("snap-of-gone")).toBe("gone");
    expect([...(await snapshots.newest()).keys()].toSorted()).toEqual(["gone", "here", "unseen"]);
  });

  it("are known but for those that can't be read", async () => {
    await using at = await testRedis();
    const snapshots = createSnapshots(at.redis, at.key);
    const all = at.key("snapshots", "vm-1");
    const taken = {
      name: "nightly",
      vmId: "vm-1",
      vmName: "db-1",
      projectId: "p",
      by: "U1",
      at: 1,
    };
    await snapshots.remember({ ...taken, id: "snap-1" });
    for (const [n, text] of garbage.entries()) {
      await at.redis.hset(all, `broken-${n}`, text);
      await at.redis.hset(all, `named nightly ${n}`, text);
      await snapshots.remember({ ...taken, id: `snap-of-${n}`, at: n });
    }
    expect(await snapshots.of("vm-1")).toHaveLength(garbage.length + 1);
    expect(await snapshots.find("vm-1", "broken-0")).toBeUndefined();
  });
});
