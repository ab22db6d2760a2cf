import { describe, expect, it } from "vitest";
import { openAnchors } from "../../src/audit/anchors.ts";
import { Trail } from "../../src/audit/trail.ts";
import { hashOf, saltedHash } from "../../src/audit/seal.ts";
import { verifyAudit } from "../../src/audit/verify.ts";
import { testRedis } from "../support/with-redis.ts";
import { append, rewriteStream, sealAll, testFolder } from "./trail-of.ts";

async function sealedTrail(count: number) {
  const world = await testRedis();
  const folder = await testFolder();
  const ids = await append(world, count);
  await sealAll(world, folder.path);
  const { redis, key } = world;
  return {
    redis,
    key,
    ids,
    world,
    folder: folder.path,
    anchors: () => openAnchors(folder.path, key.namespace).all,
    async verify() {
      const anchors = openAnchors(folder.path, key.namespace).all;
      const verdict = await verifyAudit({ redis, key, anchors, page: 7 });
      const { problem } = verdict;
      return [verdict.standing, problem?.seq, problem?.kind];
    },
    async [Symbol.asyncDispose]() {
      await folder[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}

describe("the audit trail", () => {
  it("is intact when nobody touched it, and says what was compared", async () => {
    await using trail = await sealedTrail(120);
    const { redis, key } = trail;
    const verdict = await verifyAudit({ redis, key, anchors: trail.anchors(), page: 7 });
    expect(verdict).toMatchObject({
      standing: "intact",
      sealed: 120,
      anchors: 1,
      unsealed: { count: 0, oldestMs: 0 },
      signed: { seq: 120, keys: [expect.stringMatching(/^[0-9a-f]{16}$/)] },
    });
    expect(verdict.head?.seq).toBe(120);
  });

  it("names the record of which one byte was changed", async () => {
    await using trail = await sealedTrail(30);
    await rewriteStream(trail.world, trail.key("audit"), (rows) =>
      rows.map(([id, fields], index) => [
        id,
        index === 11 ? fields.map((text) => text.replace("settled", "settler")) : fields,
      ]),
    );
    expect(await trail.verify()).toEqual(["broken", 12, "changed"]);
  });

  it("names the record that was removed", async () => {
    await using trail = await sealedTrail(30);
    await trail.redis.xdel(trail.key("audit"), trail.ids[16] ?? "");
    expect(await trail.verify()).toEqual(["broken", 17, "removed"]);
  });

  it("names the record that was removed with its seal", async () => {
    await using trail = await sealedTrail(30);
    await trail.redis.xdel(trail.key("audit"), trail.ids[16] ?? "");
    await trail.redis.xdel(trail.key("audit", "seals"), "17-0");
    expect(await trail.verify()).toEqual(["broken", 17, "removed"]);
  });

  it("names the first of two records that were swapped", async () => {
    await using trail = await sealedTrail(30);
    await rewriteStream(trail.world, trail.key("audit"), (rows) => {
      const fields = rows.map((row) => row[1]);
      [fields[8], fields[9]] = [fields[9] ?? [], fields[8] ?? []];
      return rows.map(([id], index) => [id, fields[index] ?? []]);
    });
    expect(await trail.verify()).toEqual(["broken", 9, "swapped"]);
  });

  it("names the place where a record was put in", async () => {
    await using trail = await sealedTrail(30);
    await rewriteStream(trail.world, trail.key("audit"), ([first, ...rest]) => {
      const [ms] = (first?.[0] ?? "").split("-");
      return [
        [`${Number(ms) - 1}-0`, ["at", "1", "record", "{}"]],
        ...(first ? [first] : []),
        ...rest,
      ];
    });
    expect(await trail.verify()).toEqual(["broken", 1, "inserted"]);
  });

  it("names the seal that was changed", async () => {
    await using trail = await sealedTrail(30);
    await rewriteStream(trail.world, trail.key("audit", "seals"), (rows) =>
      rows.map(([id, fields], index) => [
        id,
        index === 20
          ? fields.map((text) => (/^[0-9a-f]{64}$/.test(text) ? "0".repeat(64) : text))
          : fields,
      ]),
    );
    expect(await trail.verify()).toEqual(["broken", 21, "seal"]);
  });

  it("is known to have been longer when its last 10 records are gone without a trace in Redis", async () => {
    await using trail = await sealedTrail(30);
    const { key, world } = trail;
    await trail.redis.del(key("audit", "checkpoints"));
    for (const stream of [key("audit"), key("audit", "seals")])
      await rewriteStream(world, stream, (rows) => rows.slice(0, 20));
    expect(await trail.verify()).toEqual(["broken", 21, "truncated"]);
    const { redis } = trail;
    expect((await verifyAudit({ redis, key })).standing).toBe("intact");
  });

  it("is known to have been longer from Redis's own numbers when its last 10 records were deleted", async () => {
    await using trail = await sealedTrail(30);
    const { redis, key, ids } = trail;
    await redis.xdel(key("audit"), ...ids.slice(20));
    for (let seq = 21; seq <= 30; seq++) await redis.xdel(key("audit", "seals"), `${seq}-0`);
    await redis.del(key("audit", "checkpoints"));
    expect((await verifyAudit({ redis, key })).problem).toMatchObject({
      seq: 21,
      kind: "truncated",
    });
  });

  it("is known to be another one when it was written anew with right hashes", async () => {
    await using trail = await sealedTrail(30);
    const { key, world } = trail;
    await trail.redis.del(key("audit", "checkpoints"));
    const salts = await new Trail(trail.redis, key).salts([
      { seq: 1, id: "", at: "", payload: "", hash: "" },
    ]);
    const forged = new Map<string, string>();
    await rewriteStream(world, key("audit"), (rows) =>
      rows.map(([id, fields]) => {
        const changed = fields.map((text) => text.replace("U00", "U02"));
        forged.set(id, changed[3] ?? "");
        return [id, changed];
      }),
    );
    let before = "0".repeat(64);
    await rewriteStream(world, key("audit", "seals"), (rows) =>
      rows.map(([seqId, [, id = "", , at = ""]]) => {
        const seq = Number(seqId.split("-")[0]);
        const payload = saltedHash(salts.get(seq) ?? "", forged.get(id) ?? "");
        before = hashOf(before, { seq, id, at, payload });
        return [seqId, ["id", id, "at", at, "payload", payload, "hash", before]];
      }),
    );
    expect(await trail.verify()).toEqual(["broken", 30, "replaced"]);
  });

  it("can't be forged against a checkpoint without the key", async () => {
    await using trail = await sealedTrail(120);
    await rewriteStream(trail.world, trail.key("audit", "checkpoints"), (rows) =>
      rows.map(([id, fields]) => [
        id,
        fields.map((text) => (/^\d{13}$/.test(text) ? `${Number(text) + 1}` : text)),
      ]),
    );
    expect(await trail.verify()).toEqual(["broken", 120, "signature"]);
  });

  it("has an unsealed tail that is counted, and a tail that waits too long makes it unsure", async () => {
    await using trail = await sealedTrail(5);
    const { redis, key } = trail;
    await append(trail.world, 3);
    const young = await verifyAudit({ redis, key });
    expect(young).toMatchObject({ standing: "intact", sealed: 5, unsealed: { count: 3 } });
    await redis.xadd(key("audit"), "*", "at", "1", "record", "{}");
    const other = await testRedis();
    await using _ = other;
    await other.redis.xadd(
      other.key("audit"),
      "*",
      "at",
      String(Date.now() - 90_000),
      "record",
      "{}",
    );
    expect(await verifyAudit(other)).toMatchObject({
      standing: "unsure",
      sealed: 0,
      unsealed: { count: 1 },
    });
  });

  it("tells that a record was taken away before it was sealed", async () => {
    await using trail = await sealedTrail(5);
    const [id = ""] = await append(trail.world, 1);
    await trail.redis.xdel(trail.key("audit"), id);
    const { redis, key } = trail;
    expect((await verifyAudit({ redis, key })).problem).toMatchObject({ kind: "removed", id });
  });

  it("is unsure when there is nothing", async () => {
    await using world = await testRedis();
    expect((await verifyAudit(world)).standing).toBe("unsure");
  });

  it("is intact over several batches of seals and pages of the walk", async () => {
    await using trail = await sealedTrail(1_050);
    const { redis, key } = trail;
    const verdict = await verifyAudit({ redis, key, anchors: trail.anchors() });
    expect(verdict).toMatchObject({ standing: "intact", sealed: 1_050, signed: { seq: 1_000 } });
  });
});
