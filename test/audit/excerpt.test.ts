import { hash as digest } from "node:crypto";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { eraseRecords } from "../../src/audit/erase.ts";
import {
  type AuditExcerpt,
  excerptLines,
  excerptText,
  exportExcerpt,
  isExcerpt,
  verifyExcerpt,
} from "../../src/audit/excerpt.ts";
import { type AuditExport, verifyExport } from "../../src/audit/export.ts";
import { findSigningKey, openSigningKey } from "../../src/audit/signing-key.ts";
import { Trail } from "../../src/audit/trail.ts";
import { sealsOf } from "../../src/audit/walk.ts";
import { type OnVerified, verifyAudit } from "../../src/audit/verify.ts";
import { testRedis } from "../support/with-redis.ts";
import { append, exportedFile, rewriteStream, sealAll, testFolder } from "./trail-of.ts";

const about = "The night since Nov 26, 8:00 PM";

/** Twelve records, of which the excerpt has the second, fifth, and sixth. */
async function someTrail() {
  const world = await testRedis();
  const folder = await testFolder();
  const ids = await append(world, 12);
  await sealAll(world, folder.path);
  const acts = [
    { at: 1, says: "olivia restarted web-1", records: [ids[1] ?? ""] },
    { at: 2, says: "ada restored db-1", records: [ids[4] ?? "", ids[5] ?? ""] },
  ];
  const signingKey = findSigningKey(folder.path);
  return {
    ...world,
    ids,
    acts,
    folder: folder.path,
    excerpt: () => exportExcerpt({ ...world, signingKey, about, acts }),
    whole: () => exportedFile({ ...world, signingKey }),
    /** Against the trail in Redis. */
    verify: (text: string) =>
      verifyExcerpt(text, (onVerified) => verifyAudit({ ...world, onVerified })),
    async [Symbol.asyncDispose]() {
      await folder[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}

const against = (whole: AuditExport) => (onVerified: OnVerified) =>
  verifyExport(whole, [], onVerified);

async function someFiles(): Promise<{ file: AuditExcerpt; whole: AuditExport }> {
  await using trail = await someTrail();
  const file = await trail.excerpt();
  if (!file) throw new Error("not sealed");
  return { file, whole: await trail.whole() };
}

describe("an excerpt of the audit trail", () => {
  it("has its records and no other, and proves each against an export and against Redis", async () => {
    await using trail = await someTrail();
    const file = await trail.excerpt();
    const text = excerptText(file as AuditExcerpt);
    expect(file?.acts.map(({ records }) => records.map(({ seq }) => seq))).toEqual([[2], [5, 6]]);
    expect([...text.matchAll(/r-(\d+)/g)].map(([, n]) => n)).toEqual(["1", "4", "5"]);
    const expected = {
      standing: "proven",
      acts: [{ standing: "proven", seqs: [2] }, { seqs: [5, 6] }],
    };
    expect(await verifyExcerpt(text, against(await trail.whole()))).toMatchObject(expected);
    const verdict = await trail.verify(text);
    expect(verdict).toMatchObject(expected);
    expect(excerptLines(verdict)).toEqual([
      about,
      "Proven: 2 of 2 acts, by 3 records that the trail has as they were sealed.",
      expect.stringMatching(
        /^The words of the acts are signed by [0-9a-f]{16}, which signed heads/,
      ),
      "✓ 1970-01-01T00:00:00.001Z olivia restarted web-1 (record 2)",
      "✓ 1970-01-01T00:00:00.002Z ada restored db-1 (records 5 to 6)",
      "An excerpt doesn't show that nothing is missing between its acts. The whole trail:",
    ]);
  });

  it("can be checked with sha256sum, as it says itself", async () => {
    const { file } = await someFiles();
    // As the program prints it
    const sum = (input: string) => digest("sha256", input);
    for (const { before, seq, id, at, payload, hash, salt, record } of file.acts.flatMap(
      ({ records }) => records,
    )) {
      expect(sum(`${salt}${record}`)).toBe(payload);
      expect(sum(`\0${before} ${payload} ${seq} ${id} ${at}`)).toBe(hash);
    }
    expect(file.howToVerify.join("\n")).toContain("sha256sum");
  });

  it("never counts as the whole trail", async () => {
    const { file, whole } = await someFiles();
    expect(isExcerpt(excerptText(file))).toBe(true);
    expect(isExcerpt(JSON.stringify(whole))).toBe(false);
    expect((await verifyExport(excerptText(file))).problem?.kind).toBe("file");
    expect(await verifyExcerpt(JSON.stringify(whole), against(whole))).toMatchObject({
      standing: "broken",
      fault: "this isn't an excerpt of the audit trail, or it is damaged",
    });
  });

  it("isn't made while one of its records isn't sealed", async () => {
    await using trail = await someTrail();
    const [id = ""] = await append(trail, 1);
    const acts = [{ at: 1, says: "just now", records: [id] }];
    expect(await exportExcerpt({ ...trail, about, acts })).toBeUndefined();
    await sealAll(trail, trail.folder);
    expect(await exportExcerpt({ ...trail, about, acts })).toMatchObject({ acts: [{}] });
  });

  it("is signed by a gateway whose key has signed nothing yet, once it signed a head", async () => {
    await using trail = await someTrail();
    await using folder = await testFolder();
    const signingKey = openSigningKey(folder.path);
    const made = () => exportExcerpt({ ...trail, signingKey, about, acts: trail.acts });
    // The head is signed by the other gateway
    expect(await made()).toBeUndefined();
    await append(trail, 1);
    await sealAll(trail, trail.folder);
    const verdict = await trail.verify(excerptText((await made()) as AuditExcerpt));
    expect(verdict.standing).toBe("proven");
    expect(verdict.whole.signed.keys).toHaveLength(2);
  });

  it("is proven still when its record was erased since, and says so", async () => {
    await using trail = await someTrail();
    const text = excerptText((await trail.excerpt()) as AuditExcerpt);
    await eraseRecords({ ...trail, ids: [trail.ids[4] ?? ""], who: "U09ADMIN", why: "left us" });
    await sealAll(trail, trail.folder);
    const verdict = await trail.verify(text);
    expect(verdict).toMatchObject({ standing: "proven", erasedSince: 1 });
    expect(excerptLines(verdict)).toContain("1 of its records were erased from the trail since.");
  });

  it("can't be told where the trail ends before it, or breaks before it, or has signed nothing with its key", async () => {
    await using trail = await someTrail();
    const { excerpt, whole, verify, redis, key } = trail;
    const early = await whole();
    const more = await append(trail, 1);
    await sealAll(trail, trail.folder);
    const signingKey = findSigningKey(trail.folder);
    const acts = [{ at: 1, says: "later", records: more }];
    const later = await exportExcerpt({ ...trail, signingKey, about, acts });
    expect(await verifyExcerpt(excerptText(later as AuditExcerpt), against(early))).toMatchObject({
      standing: "unsure",
      acts: [{ why: "the trail that it was compared with ends before record 13" }],
    });

    const unsigned = await exportExcerpt({ ...trail, about, acts: trail.acts });
    const unproven = await verify(excerptText(unsigned as AuditExcerpt));
    expect(unproven).toMatchObject({
      standing: "unsure",
      acts: [{ standing: "proven" }, { standing: "proven" }],
    });
    expect(excerptLines(unproven)).toContain(
      "The words of the acts are not proven: no head of this trail is signed by the file's key.",
    );

    const text = excerptText((await excerpt()) as AuditExcerpt);
    await rewriteStream(trail, key("audit", "seals"), (rows) => rows.toSpliced(3, 1));
    expect(await verify(text)).toMatchObject({
      standing: "unsure",
      acts: [
        { standing: "proven" },
        { standing: "unsure", why: "the trail that it was compared with ends before record 5" },
      ],
      whole: { standing: "broken" },
    });
    expect(await redis.exists(key("audit"))).toBe(1);
  });

  it("names the act whose record is another one in this trail", async () => {
    const { file } = await someFiles();
    const { whole } = await someFiles();
    expect(await verifyExcerpt(excerptText(file), against(whole))).toMatchObject({
      standing: "broken",
      acts: [{ standing: "broken", why: "the trail has another record 2" }, { standing: "broken" }],
    });
  });

  it("betrays any changed character of its text", async () => {
    const { file, whole } = await someFiles();
    const text = excerptText(file);
    await fc.assert(
      fc.asyncProperty(
        fc.nat(text.length - 1),
        fc.constantFrom("0", "a", " ", "}", '"', ",", "\\", ""),
        async (place, by) => {
          const changed = text.slice(0, place) + by + text.slice(place + 1);
          fc.pre(!isSame(changed, file));
          expect((await verifyExcerpt(changed, against(whole))).standing).toBe("broken");
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe("the seals of some records", () => {
  it("are found in order with the hash before each, over gaps and pages", async () => {
    await using trail = await someTrail();
    const { redis, key, ids } = trail;
    const created = new Trail(redis, key);
    const wanted = [ids[11], ids[0], ids[6], "9-0"].flatMap((id) => id ?? []);
    const found = [...(await sealsOf(created, wanted, 3)).values()];
    expect(found.map(({ seal }) => seal.seq)).toEqual([1, 7, 12]);
    expect(found[1]?.before).toBe((await created.seal(6))?.hash);
    expect((await sealsOf(created, [])).size).toBe(0);
  });
});

function isSame(text: string, file: AuditExcerpt): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(file);
  } catch {
    return false;
  }
}
