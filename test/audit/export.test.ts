import { hash as digest } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { eraseRecords } from "../../src/audit/erase.ts";
import {
  type AuditExport,
  exportAudit,
  verifyExport,
  verifyExportLines,
} from "../../src/audit/export.ts";
import { findSigningKey } from "../../src/audit/signing-key.ts";
import { testRedis } from "../support/with-redis.ts";
import { append, exportedFile, exportedText, sealAll, testFolder } from "./trail-of.ts";

async function someText(count: number, isSigned = true): Promise<string> {
  await using world = await testRedis();
  await using folder = await testFolder();
  await append(world, count);
  await sealAll(world, folder.path);
  const signingKey = isSigned ? findSigningKey(folder.path) : undefined;
  return await exportedText({ redis: world.redis, key: world.key, signingKey });
}

const someExport = async (count: number, isSigned = true) =>
  JSON.parse(await someText(count, isSigned)) as AuditExport;

describe("an export of the audit trail", () => {
  it("verifies from its text alone", async () => {
    const text = await someText(120);
    const file = JSON.parse(text) as AuditExport;
    expect(await verifyExport(text)).toMatchObject({
      standing: "intact",
      sealed: 120,
      head: { seq: 120, hash: file.records.at(-1)?.hash },
      signed: { seq: 120 },
    });
    expect(file).toMatchObject({ from: 1, to: 120, head: { seq: 120 } });
  });

  it("is written and verified page by page, so that a trail of any length takes the memory of one page", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    const count = 2_500;
    await append(world, count);
    await sealAll(world, folder.path);
    const { text } = await exportAudit({ redis: world.redis, key: world.key, page: 50 });
    const parts = await Array.fromAsync(text);
    const recordsIn = parts.map((part) => part.split('"payload"').length - 1);
    expect(Math.max(...recordsIn)).toBe(50);
    expect(recordsIn.reduce((sum, many) => sum + many, 0)).toBe(count);
    const lines = parts.join("").split("\n");
    let read = 0;
    function* readLines() {
      for (const line of lines) {
        read += 1;
        yield line;
      }
    }
    let readAtFirst = 0;
    const onVerified = ({ seq }: { seq: number }) => void (seq === 1 && (readAtFirst = read));
    const verdict = await verifyExportLines(readLines, [], onVerified);
    expect(verdict).toMatchObject({ standing: "intact", sealed: count });
    // The first pass reads all but the records, the second one the records.
    expect(readAtFirst - lines.length).toBeLessThan(count / 2);
  });

  it("can be checked with sha256sum, as it says itself", async () => {
    const file = await someExport(2);
    let before = file.before;
    // As the program prints it
    const sum = (input: string) => digest("sha256", input);
    for (const { seq, id, at, payload, hash, salt, record } of file.records) {
      expect(sum(`${salt}${record}`)).toBe(payload);
      expect(sum(`\0${before} ${payload} ${seq} ${id} ${at}`)).toBe(hash);
      before = hash;
    }
    expect(file.head.hash).toBe(before);
    expect(file.howToVerify.join("\n")).toContain("sha256sum");
  });

  it("verifies after records were erased, and doesn't when one is just missing", async () => {
    await using world = await testRedis();
    await using folder = await testFolder();
    const ids = await append(world, 10);
    await sealAll(world, folder.path);
    const { redis, key } = world;
    await eraseRecords({ redis, key, ids: [ids[3] ?? ""], who: "U09ADMIN", why: "left us" });
    await sealAll(world, folder.path);
    const whole = await exportedFile({ redis, key });
    expect(whole.records[3]).not.toHaveProperty("record");
    expect(await verifyExport(whole)).toMatchObject({ standing: "intact", sealed: 11, erased: 1 });
    await redis.xdel(key("audit"), ids[6] ?? "");
    const cut = await exportedFile({ redis, key });
    expect((await verifyExport(cut)).problem).toMatchObject({ seq: 7, kind: "removed" });
  });

  it("is compared with heads kept elsewhere", async () => {
    const file = await someExport(5);
    const right = { seq: 5, hash: file.head.hash, at: 0 };
    expect(await verifyExport(file, [right])).toMatchObject({ standing: "intact", anchors: 1 });
    const against = async (seq: number) => {
      const { problem } = await verifyExport(file, [{ ...right, seq }]);
      return problem?.kind;
    };
    expect(await against(9)).toBe("truncated");
    expect(await against(4)).toBe("replaced");
    expect((await verifyExport(await someExport(5, false))).standing).toBe("intact");
  });

  it("knows one spelling of a signature only", async () => {
    const file = await someExport(1);
    const last = file.signature?.at(-3) ?? "";
    const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    // decodes to the same bytes
    const twin = digits[digits.indexOf(last) + 1] ?? "";
    const signature = `${file.signature?.slice(0, -3)}${twin}==`;
    expect((await verifyExport({ ...file, signature })).problem?.kind).toBe("file");
  });

  it("is refused in plain words when it is something else", async () => {
    for (const text of ["", "{}", "[1]", "null", '{"format":"gatehouse-audit-export-1"}'])
      expect((await verifyExport(text)).problem?.kind).toBe("file");
  });

  it("betrays any single change at or before the record that was changed", async () => {
    const file = await someExport(12);
    await fc.assert(
      fc.asyncProperty(change(file), async ({ changed, seq }) => {
        const text = JSON.stringify(changed);
        fc.pre(!isSame(text, file));
        const { standing: is, problem } = await verifyExport(text);
        expect(is).toBe("broken");
        expect(problem?.seq).toBeLessThanOrEqual(seq);
      }),
      { numRuns: 100 },
    );
  });

  it("betrays any changed character of its text", async () => {
    const text = await someText(6);
    const file = JSON.parse(text) as AuditExport;
    const anyPlace = fc.nat(text.length - 1);
    await fc.assert(
      fc.asyncProperty(
        anyPlace,
        fc.constantFrom("0", "a", " ", "}", '"', ",", "\\", ""),
        async (place, by) => {
          const changed = text.slice(0, place) + by + text.slice(place + 1);
          fc.pre(!isSame(changed, file));
          expect((await verifyExport(changed)).standing).toBe("broken");
        },
      ),
      { numRuns: 100 },
    );
  });
});

function isSame(text: string, file: AuditExport): boolean {
  try {
    return isDeepStrictEqual(JSON.parse(text), JSON.parse(JSON.stringify(file)));
  } catch {
    return false;
  }
}

/** One change somewhere, and the number of the record it is in (one behind the last, when it is in none). */
function change(file: AuditExport): fc.Arbitrary<{ changed: unknown; seq: number }> {
  const count = file.records.length;
  const index = fc.nat(count - 1);
  const records = (edit: (copy: AuditExport["records"]) => void) => {
    const changed = structuredClone(file);
    edit(changed.records);
    return changed;
  };
  const field = fc.constantFrom("seq", "id", "at", "payload", "hash", "salt", "record", "without");
  const value = fc.oneof(
    fc.string(),
    fc.integer(),
    fc.constantFrom("erased", "withheld", undefined, null),
    fc.stringMatching(/^[0-9a-f]{64}$/),
  );
  return fc.oneof(
    fc.tuple(index, field, value).map(([at, name, put]) => ({
      seq: at + 1,
      changed: records((copy) => void Object.assign(copy[at] ?? {}, { [name]: put })),
    })),
    fc.tuple(index, field).map(([at, name]) => ({
      seq: at + 1,
      changed: records((copy) => void Reflect.deleteProperty(copy[at] ?? {}, name)),
    })),
    fc.tuple(index, field, fc.nat(63)).map(([at, name, place]) => ({
      seq: at + 1,
      changed: records((copy) => {
        const record = copy[at] ?? {};
        const text = String(Reflect.get(record, name));
        const by = text[place] === "1" ? "2" : "1";
        Object.assign(record, { [name]: text.slice(0, place) + by + text.slice(place + 1) });
      }),
    })),
    index.map((at) => ({ seq: at + 1, changed: records((copy) => void copy.splice(at, 1)) })),
    fc.tuple(index, index).map(([from, to]) => ({
      seq: Math.min(from, to) + 1,
      changed: records((copy) => {
        const [one, two] = [copy[from], copy[to]];
        if (one && two) [copy[from], copy[to]] = [two, one];
      }),
    })),
    fc.tuple(index, index).map(([from, to]) => ({
      seq: to + 1,
      changed: records((copy) => {
        const one = copy[from];
        if (one) copy.splice(to, 0, one);
      }),
    })),
    index.map((keep) => ({ seq: keep + 1, changed: records((copy) => void copy.splice(keep)) })),
    fc.constantFrom(...Object.keys(file)).map((name) => ({
      seq: count + 1,
      changed: Object.fromEntries(Object.entries(file).filter(([other]) => other !== name)),
    })),
    fc.tuple(fc.constantFrom(...Object.keys(file)), value).map(([name, put]) => ({
      seq: count + 1,
      changed: { ...file, [name]: put },
    })),
  );
}
