import { describe, expect, it } from "vitest";
import { readAudit } from "../../src/audit/read-audit.ts";
import { testRedis } from "../support/with-redis.ts";
import { append } from "./trail-of.ts";

describe("reading the audit trail", () => {
  it("shows the newest first, and says whether there are more", async () => {
    await using world = await testRedis();
    await append(world, 12);
    const page = await readAudit({ ...world, most: 5 });
    expect(page.entries.map(({ record }) => record["request"])).toEqual([
      "r-11",
      "r-10",
      "r-9",
      "r-8",
      "r-7",
    ]);
    expect(page.isMore).toBe(true);
    const all = await readAudit({ ...world, most: 50 });
    expect(all.entries).toHaveLength(12);
    expect(all.isMore).toBeUndefined();
  });

  it("finds what is about a target, a request or a person", async () => {
    await using world = await testRedis();
    await append(world, 600);
    await append(world, 1, () => ({ what: "refusal", who: "U9", targets: ["vm-3", "vm-8"] }));
    const requests = async (filter: object) => {
      const { entries } = await readAudit({ ...world, most: 3, ...filter });
      return entries.map(({ record }) => record["request"] ?? record["what"]);
    };
    expect(await requests({ targetId: "vm-3" })).toEqual(["refusal", "r-598", "r-591"]);
    expect(await requests({ act: "r-2" })).toEqual(["r-2"]);
    expect(await requests({ who: "U9" })).toEqual(["refusal"]);
    expect(await requests({ who: "U02", targetId: "vm-1" })).toEqual(["r-596", "r-575", "r-554"]);
    expect(await requests({ who: "U8" })).toEqual([]);
  });

  it("reads an act with its snapshot or its requests, and goes on before a record", async () => {
    await using world = await testRedis();
    const origin = { kind: "rollout", rollout: "roll-1", request: "r-0" };
    const safety = { kind: "safety", request: "r-2" };
    const records = [
      { what: "roll", roll: "roll-1" },
      { what: "request", request: "r-1", origin },
      { what: "request", request: "r-2" },
      { what: "request", request: "r-3", origin: safety },
    ];
    const ids = await append(world, 4, (index) => records[index] ?? {});
    const read = async (filter: object) => {
      const { entries } = await readAudit({ ...world, most: 9, ...filter });
      return entries.map(({ id }) => ids.indexOf(id));
    };
    expect(await read({ act: "roll-1" })).toEqual([1, 0]);
    expect(await read({ act: "r-2" })).toEqual([3, 2]);
    expect(await read({ act: "r-1" })).toEqual([1]);
    expect(await read({ before: ids[2] })).toEqual([1, 0]);
  });

  it("shows a record that isn't one as it is", async () => {
    await using world = await testRedis();
    const { redis, key } = world;
    await redis.xadd(key("audit"), "*", "at", "5", "record", "{broken");
    const { entries } = await readAudit({ ...world, most: 3 });
    expect(entries).toMatchObject([{ at: 5, record: { what: "unreadable", why: "{broken" } }]);
  });
});
