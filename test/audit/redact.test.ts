import { describe, expect, it } from "vitest";
import { eraseRecords } from "../../src/audit/erase.ts";
import { verifyExport } from "../../src/audit/export.ts";
import { createPseudonymizer } from "../../src/audit/pseudonym.ts";
import { redactTrail } from "../../src/audit/redact.ts";
import { Trail } from "../../src/audit/trail.ts";
import { verifyAudit } from "../../src/audit/verify.ts";
import { testRedis } from "../support/with-redis.ts";
import { append, exportedText, rewriteStream, sealAll, testFolder } from "./trail-of.ts";

const act = { who: "U09ADMIN", why: "left the company" };

/** A sealed trail of three people, U00, U01, and U02, a third of the records each. */
async function threePeople(count = 30) {
  const world = await testRedis();
  const folder = await testFolder();
  const { redis, key } = world;
  const ids = await append(world, count);
  await sealAll(world, folder.path);
  const trail = new Trail(redis, key);
  const redactionOf = (person: string, pseudonym: string) => ({
    ...act,
    person: pseudonym,
    redact: createPseudonymizer({ person, pseudonym, names: [] }),
  });
  return {
    ...world,
    ids,
    trail,
    remove: (person: string, pseudonym = "erased-1") =>
      redactTrail(trail, redactionOf(person, pseudonym)),
    seal: () => sealAll(world, folder.path),
    verify: () => verifyAudit({ redis, key, page: 7 }),
    async [Symbol.asyncDispose]() {
      await folder[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}

describe("removing a person from the audit trail", () => {
  it("leaves the others' records as they are, and a chain that verifies", async () => {
    await using at = await threePeople();
    const before = await at.redis.xrange(at.key("audit"), "-", "+");
    await at.remove("U01");
    expect(await at.verify()).toMatchObject({
      standing: "intact",
      sealed: 30,
      redacted: 10,
      erased: 0,
    });
    await at.seal();
    expect(await at.verify()).toMatchObject({ standing: "intact", sealed: 31, redacted: 10 });
    const after = await at.redis.xrange(at.key("audit"), "-", "+");
    const others = before.filter(([, fields]) => !fields.join(" ").includes("U01"));
    expect(after.filter(([id]) => others.some(([same]) => same === id))).toEqual(others);
    expect(JSON.stringify(after)).not.toContain("U01");
    expect(await at.trail.find(at.ids[1] ?? "")).toEqual({
      record: expect.stringContaining('"requester":"erased-1"'),
      standing: "sealed",
    });
    const salts = await at.redis.hkeys(at.key("audit", "salts", 0));
    expect(salts.map(Number).toSorted((a, b) => a - b)).toEqual([
      ...Array.from({ length: 30 }, (_, index) => index + 1).filter((seq) => seq % 3 !== 2),
      31,
    ]);
  });

  it("can be done for one person after another, and their records can still be erased", async () => {
    await using at = await threePeople();
    const both = { what: "note", who: "U01", requester: "U02" };
    const [shared = ""] = await append(at, 1, () => both);
    await at.seal();
    await at.remove("U01");
    await at.seal();
    await at.remove("U02", "erased-2");
    await at.seal();
    expect(await at.verify()).toMatchObject({ standing: "intact", redacted: 21 });
    expect((await at.trail.find(shared))?.record).toBe(
      JSON.stringify({ what: "note", who: "erased-1", requester: "erased-2" }),
    );
    await eraseRecords({ redis: at.redis, key: at.key, ids: [shared], ...act });
    await at.seal();
    expect(await at.verify()).toMatchObject({ standing: "intact", redacted: 20, erased: 1 });
  });

  it("hides no later change: not of what is left, nor of its salt, nor of the record that vouches", async () => {
    const edits: ((fields: string[]) => string[])[] = [
      (fields) => fields.map((text) => text.replace('"requester":"erased-1"', '"requester":"U02"')),
      (fields) => (fields[4] === "salt" ? [...fields.slice(0, 5), "0".repeat(32)] : fields),
      (fields) => (fields[4] === "salt" ? fields.slice(0, 4) : fields),
      (fields) => fields.map((text) => text.replace("left the company", "never mind")),
      (fields) => (fields[4] === "salt" ? ["at", "1", ...fields.slice(2)] : fields),
    ];
    for (const edit of edits) {
      await using at = await threePeople();
      await at.remove("U01");
      await at.seal();
      await rewriteStream(at, at.key("audit"), (rows) =>
        rows.map(([id, fields]) => [id, edit(fields)]),
      );
      expect(await at.verify(), String(edit)).toMatchObject({
        standing: "broken",
        problem: { kind: "changed" },
      });
    }
    await using at = await threePeople();
    await at.remove("U01");
    await at.seal();
    await at.redis.xdel(at.key("audit"), at.ids[1] ?? "");
    expect(await at.verify()).toMatchObject({
      standing: "broken",
      problem: { kind: "removed", seq: 2 },
    });
  });

  it("lets nobody pass off another text as a redacted record", async () => {
    await using at = await threePeople();
    await rewriteStream(at, at.key("audit"), (rows) =>
      rows.map(([id, fields], index) =>
        index === 4
          ? [id, [...fields.slice(0, 2), "record", '{"what":"note"}', "salt", "00"]]
          : [id, fields],
      ),
    );
    expect(await at.verify()).toMatchObject({
      standing: "broken",
      problem: { kind: "changed", seq: 5, sentence: expect.stringContaining("no record vouches") },
    });
    expect((await at.trail.find(at.ids[4] ?? ""))?.standing).toBe("changed");
  });

  it("is exported, and the file verifies by itself", async () => {
    await using at = await threePeople();
    await at.remove("U01");
    await at.seal();
    const text = await exportedText({ redis: at.redis, key: at.key });
    expect(text).not.toContain("U01");
    expect(await verifyExport(text)).toMatchObject({
      standing: "intact",
      sealed: 31,
      redacted: 10,
    });
    expect(await verifyExport(text.replace("erased-1", "erased-7"))).toMatchObject({
      standing: "broken",
    });
  });

  it("changes nothing when it is interrupted, and is done whole the next time", async () => {
    await using at = await threePeople(1_200);
    const before = await at.redis.xrange(at.key("audit"), "-", "+");
    const removing = at.remove("U01");
    const take = () => at.redis.set(at.key("audit", "rewriting"), "somebody", "XX");
    while ((await take()) === null);
    await expect(removing).rejects.toThrow("Someone else");
    expect(await at.redis.xrange(at.key("audit"), "-", "+")).toEqual(before);
    await at.redis.del(at.key("audit", "rewriting"));
    await at.remove("U01");
    await at.seal();
    expect(await at.verify()).toMatchObject({ standing: "intact", redacted: 400 });
  });

  it("refuses what isn't what was sealed", async () => {
    await using at = await threePeople(6);
    await at.redis.hset(at.key("audit", "salts", 0), "2", "f".repeat(32));
    await expect(at.remove("U01")).rejects.toThrow("is not what was sealed");
  });
});
