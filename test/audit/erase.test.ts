import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { eraseRecords } from "../../src/audit/erase.ts";
import { startSealer } from "../../src/audit/sealer.ts";
import { verifyAudit } from "../../src/audit/verify.ts";
import { silentLog } from "../../src/log/log.ts";
import { testRedis } from "../support/with-redis.ts";
import { append, sealAll, sealed, testFolder } from "./trail-of.ts";

const by = { who: "U09ADMIN", why: "left the company" };

describe("erasing audit records", () => {
  it("takes the content away for good, and the chain still verifies", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    const { redis, key } = world;
    const secret = randomBytes(24).toString("base64url");
    // a dump that is compressed may hold the secret in pieces
    await redis.config("SET", "rdbcompression", "no");
    const ids = await append(world, 20, (index) => ({
      what: "note",
      who: index === 7 ? secret : "U1",
    }));
    await sealAll(world, folder.path);
    const dump = async () =>
      Buffer.concat(
        await Promise.all(
          (await redis.keys(`${key.prefix}:*`)).map(
            async (name) => (await redis.dumpBuffer(name)) ?? Buffer.alloc(0),
          ),
        ),
      );
    expect((await dump()).includes(secret)).toBe(true);
    expect(await eraseRecords({ redis, key, ids: [ids[7] ?? ""], ...by })).toEqual({ erased: 1 });
    expect((await dump()).includes(secret)).toBe(false);
    // said by the trail before it is sealed, and after
    expect(await verifyAudit({ redis, key })).toMatchObject({
      standing: "intact",
      sealed: 20,
      erased: 1,
    });
    await sealAll(world, folder.path);
    expect(await verifyAudit({ redis, key, page: 3 })).toMatchObject({
      standing: "intact",
      sealed: 21,
      erased: 1,
    });
    const [, fields] = (await redis.xrevrange(key("audit"), "+", "-", "COUNT", 1))[0] ?? [];
    expect(fields?.[3]).toBe(
      JSON.stringify({ what: "audit-erased", ...by, erased: [{ seq: 8, id: ids[7] }] }),
    );
    expect(await redis.keys(`${key.prefix}:audit:copy:*`)).toEqual([]);
  });

  it("loses nothing that is written and sealed meanwhile", async () => {
    await using world = await testRedis();
    await using other = await testRedis();
    await using folder = await testFolder();
    const { redis, key } = world;
    const ids = await append(world, 1_100);
    const dataDir = folder.path;
    const sealer = startSealer({ redis: other.redis, key, dataDir, log: silentLog(), everyMs: 5 });
    await sealed(world);
    const erasing = eraseRecords({
      redis,
      key,
      ids: [1, 700, 1_099].map((at) => ids[at] ?? ""),
      ...by,
    });
    for (let round = 0; round < 20; round++) await append({ redis: other.redis, key }, 25);
    await erasing;
    await sealed(world);
    await sealer.close();
    expect(await verifyAudit({ redis, key })).toMatchObject({
      standing: "intact",
      sealed: 1_601,
      erased: 3,
    });
  });

  it("has erased nothing when it is interrupted, and is done whole the next time", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    const { redis, key } = world;
    const ids = (await append(world, 1_100)).slice(10, 12);
    await sealAll(world, folder.path);
    const erasing = eraseRecords({ redis, key, ids, ...by });
    const takes = async () => redis.set(key("audit", "rewriting"), "somebody", "XX");
    while ((await takes()) === null);
    await expect(erasing).rejects.toThrow("Someone else");
    expect(await verifyAudit({ redis, key })).toMatchObject({ standing: "intact", erased: 0 });
    expect(await redis.xlen(key("audit"))).toBe(1_100);
    await redis.del(key("audit", "rewriting"));
    expect(await eraseRecords({ redis, key, ids, ...by })).toEqual({ erased: 2 });
    await sealAll(world, folder.path);
    expect(await verifyAudit({ redis, key })).toMatchObject({ standing: "intact", erased: 2 });
  });

  it("done again says nothing twice", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    const { redis, key } = world;
    const ids = (await append(world, 5)).slice(1, 3);
    await sealAll(world, folder.path);
    await eraseRecords({ redis, key, ids, ...by });
    expect(await eraseRecords({ redis, key, ids, ...by })).toEqual({ erased: 0 });
    expect(await redis.xlen(key("audit"))).toBe(4);
  });

  it("refuses what isn't sealed, what was tampered with, what explains the trail, and two at once", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    const { redis, key } = world;
    const ids = await append(world, 3);
    await sealAll(world, folder.path);
    await eraseRecords({ redis, key, ids: [ids[0] ?? ""], ...by });
    await sealAll(world, folder.path);
    const [marker = ["", []]] = await redis.xrevrange(key("audit"), "+", "-", "COUNT", 1);
    const [young = ""] = await append(world, 1);
    const erase = (id: string) => eraseRecords({ redis, key, ids: [id], ...by });
    await expect(erase(young)).rejects.toThrow("is not sealed");
    await expect(erase(marker[0])).rejects.toThrow("so it must stay");
    await expect(erase("everything")).rejects.toThrow("not the ID");
    await redis.hset(key("audit", "salts", 0), "2", "f".repeat(32));
    await expect(erase(ids[1] ?? "")).rejects.toThrow("is not what was sealed");
    await redis.set(key("audit", "rewriting"), "somebody");
    await expect(erase(ids[2] ?? "")).rejects.toThrow("Someone else");
  });
});
