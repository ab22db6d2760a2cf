import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runAudit } from "../../src/cli/audit.ts";
import { exportExcerpt } from "../../src/audit/excerpt.ts";
import { findSigningKey } from "../../src/audit/signing-key.ts";
import { Trail } from "../../src/audit/trail.ts";
import { testRedis } from "../support/with-redis.ts";
import { append, sealAll, testFolder } from "../audit/trail-of.ts";

async function terminal(count: number) {
  const world = await testRedis();
  const folder = await testFolder();
  const ids = await append(world, count);
  if (count > 0) await sealAll(world, folder.path);
  return {
    world,
    ids,
    folder: folder.path,
    async audit(...words: string[]) {
      let said = "";
      const code = await runAudit(words, {
        access: () => ({
          redisUrl: world.url,
          namespace: world.key.namespace,
          dataDir: folder.path,
        }),
        write: (text) => void (said += text),
      });
      return { code, said };
    },
    async [Symbol.asyncDispose]() {
      await folder[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}

const noRedis = () => ({ redisUrl: undefined });

describe("audit in a terminal", () => {
  it("verify ends with 0 when all is well, and says what it saw", async () => {
    await using at = await terminal(3);
    const { code, said } = await at.audit("verify");
    expect(code).toBe(0);
    expect(said).toMatch(
      /^The audit trail is intact: 3 records verified\.\nHead: 3:[0-9a-f]{64}\n/,
    );
    expect(said).toContain("Compared with 1 head kept elsewhere.");
  });

  it("verify ends with 1 and names the record when the chain is bad", async () => {
    await using at = await terminal(3);
    await at.world.redis.xdel(at.world.key("audit"), at.ids[1] ?? "");
    const { code, said } = await at.audit("verify");
    expect(code).toBe(1);
    expect(said).toContain(`broken at record 2 (${at.ids[1]}): the record is missing`);
  });

  it("verify compares with a head that was posted", async () => {
    await using at = await terminal(3);
    const { said } = await at.audit("head");
    expect((await at.audit("verify", "--anchor", said.trim())).code).toBe(0);
    expect((await at.audit("verify", "--anchor", `3:${"0".repeat(64)}`)).code).toBe(1);
    expect((await at.audit("verify", "--anchor", said.trim().replace("3:", "9:"))).code).toBe(1);
    expect(await at.audit("verify", "--anchor", "yesterday")).toEqual({
      code: 2,
      said: "yesterday is not a head\nit looks like 120:9f86d081…\n",
    });
  });

  it("export writes a file that verifies without Redis, and leaves a record of it", async () => {
    await using at = await terminal(4);
    const file = join(at.folder, "export.json");
    expect(await at.audit("export", file)).toEqual({
      code: 0,
      said: `4 records written to ${file}\n`,
    });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const [last] = await new Trail(at.world.redis, at.world.key).recordsBefore(undefined, 1);
    expect(last?.record).toBe('{"what":"audit-export","who":"terminal","from":1,"to":4}');
    let said = "";
    const alone = { access: noRedis, write: (text: string) => void (said += text) };
    expect(await runAudit(["verify", file], alone)).toBe(0);
    expect(said).toContain("The audit trail is intact: 4 records verified.");
    await writeFile(file, (await readFile(file, "utf8")).replace("settled", "settler"));
    expect(await runAudit(["verify", file], alone)).toBe(1);
    expect(said).toContain("broken at record 1 ");
  });

  it("verify says of an excerpt which acts are proven, by Redis or by an export, and never alone", async () => {
    await using at = await terminal(4);
    const { redis, key } = at.world;
    const [night, whole] = [join(at.folder, "night.json"), join(at.folder, "whole.json")];
    await at.audit("export", whole);
    const acts = [{ at: 0, says: "olivia restarted web-1", records: at.ids.slice(1, 3) }];
    const signingKey = findSigningKey(at.folder);
    const file = await exportExcerpt({ redis, key, signingKey, about: "The night", acts });
    await writeFile(night, JSON.stringify(file));
    const proven = expect.stringMatching(
      /^The night\nProven: 1 of 1 act, by 2 records [^]*✓ 1970-[^]*\(records 2 to 3\)\n[^]*\nThe audit trail is intact/,
    );
    expect(await at.audit("verify", night)).toEqual({ code: 0, said: proven });
    expect(await at.audit("verify", night, "--against", whole)).toEqual({ code: 0, said: proven });
    let said = "";
    const alone = { access: noRedis, write: (text: string) => void (said += text) };
    expect(await runAudit(["verify", night], alone)).toBe(2);
    expect(said).toMatch(/^An excerpt is compared with the whole trail\nadd --against/);
    expect((await at.audit("verify", whole, "--against", night)).code).toBe(64);
    expect((await at.audit("verify", night, "--against", night)).code).toBe(1);
    // The acts are proven, the trail behind them is not
    await redis.xdel(key("audit"), at.ids[3] ?? "");
    const broken = await at.audit("verify", night);
    expect(broken).toMatchObject({ code: 1, said: expect.stringContaining("Proven: 1 of 1 act") });
    await writeFile(night, JSON.stringify(file).replace("olivia", "nobody"));
    expect(await at.audit("verify", night)).toMatchObject({
      code: 1,
      said: expect.stringContaining("The excerpt is worthless: the file was changed."),
    });
  });

  it("export without a file writes to the terminal", async () => {
    await using at = await terminal(1);
    const { code, said } = await at.audit("export");
    expect(code).toBe(0);
    expect(JSON.parse(said)).toMatchObject({ format: "gatehouse-audit-export-1", to: 1 });
  });

  it("erase asks who and why", async () => {
    await using at = await terminal(2);
    const [id = ""] = at.ids;
    expect((await at.audit("erase", id)).said).toContain("Name the records, --who, and --why");
    const done = await at.audit("erase", id, "--who", "U09ADMIN", "--why", "left us");
    expect(done).toMatchObject({ code: 0, said: expect.stringContaining("1 erased.") });
    expect((await at.audit("verify")).said).toContain("1 record erased on purpose");
  });

  /** A trail whose first records are older than those that requests still cite. */
  async function aged(at: Awaited<ReturnType<typeof terminal>>, old: number, young: number) {
    const { redis, key } = at.world;
    const begin = Date.UTC(2020, 0, 1);
    for (let n = 0; n < old; n += 1) {
      const fields = ["at", begin + n, "record", JSON.stringify({ what: "request", n })];
      await redis.xadd(key("audit"), `${begin + n}-0`, ...fields);
    }
    await sealAll(at.world, stopped(at));
    await append(at.world, young);
    await sealAll(at.world, at.folder);
  }

  /** The directory of a gateway that anchored an old head, and hasn't run since. */
  const stopped = ({ folder }: { folder: string }) => join(folder, "stopped");

  const why = ["--who", "ada", "--why", "Redis is full"];

  it("erase --person asks for an ID, who, and why, and erases nothing where the trail is broken", async () => {
    await using at = await terminal(6);
    const act = ["--who", "ada", "--why", "asked for it"];
    const erase = (...words: string[]) => at.audit("erase", "--person", ...words);
    expect((await erase("U01")).code).toBe(64);
    expect((await erase("U01", at.ids[1] ?? "", ...act)).code).toBe(64);
    expect((await erase("olivia", ...act)).said).toContain("olivia is not the ID of a person");
    expect((await erase("U0NOBODY", ...act)).said).toContain("Nothing in Redis names U0NOBODY.");
    await at.world.redis.xdel(at.world.key("audit"), at.ids[2] ?? "");
    const { code, said } = await erase("U01", ...act);
    expect(code).toBe(2);
    expect(said).toContain("The audit trail is broken, so nothing is erased");
    expect(await at.world.redis.exists(at.world.key("audit", "erasing"))).toBe(0);
  });

  it("archive writes the whole trail to a file, cuts off what is old, and verify goes on from the signed cut", async () => {
    await using at = await terminal(0);
    const { redis, key } = at.world;
    await aged(at, 250, 10);
    const file = join(at.folder, "2020.json");
    const posted = (await at.audit("head")).said.trim();
    expect(await at.audit("archive", file, "--before", "2021-01-01", ...why)).toEqual({
      code: 0,
      said: `260 records written to ${file} and verified. Those up to 250 are cut off: keep it.\n`,
    });
    expect(await redis.xlen(key("audit"))).toBe(11);
    expect(await redis.xlen(key("audit", "seals"))).toBe(10);
    expect(await redis.exists(key("audit", "salts", 0), key("audit", "salts", 1))).toBe(0);
    expect(await redis.hlen(key("audit", "salts", 2))).toBe(10);
    await sealAll(at.world, stopped(at));
    const verified = await at.audit("verify", "--anchor", posted);
    expect(verified).toMatchObject({
      code: 0,
      said: expect.stringContaining("11 records verified"),
    });
    expect(verified.said).toMatch(/Records 1 to 250 were archived on .+, signed by [0-9a-f]{16}/);
    expect((await at.audit("verify", file)).code).toBe(0);
    // What follows is exported, archived, and proven as before
    const later = join(at.folder, "later.json");
    expect((await at.audit("export", later)).said).toBe(`11 records written to ${later}\n`);
    expect((await at.audit("verify", later)).said).toContain("11 records verified");
    expect(
      await at.audit("archive", join(at.folder, "2.json"), "--before", "2021-01-01", ...why),
    ).toMatchObject({ code: 2, said: expect.stringContaining("No sealed record is that old") });
  });

  it("archive cuts off nothing unless the file has it all, verified", async () => {
    await using at = await terminal(0);
    const { redis, key } = at.world;
    await aged(at, 20, 2);
    const file = join(at.folder, "2020.json");
    const attempt = (before: string) => at.audit("archive", file, "--before", before, ...why);
    const today = new Date().toISOString().slice(0, 10);
    expect((await attempt(today)).said).toContain("The records of the last 90 days can't");
    expect((await attempt("2019-01-01")).said).toContain("No sealed record is that old");
    expect((await attempt("soon")).code).toBe(64);
    expect((await at.audit("archive", file, "--before", "2021-01-01")).code).toBe(64);
    await writeFile(file, "another archive");
    expect((await attempt("2021-01-01")).code).toBe(2);
    expect(await readFile(file, "utf8")).toBe("another archive");
    await rm(file);
    const [first = ["", []]] = await redis.xrange(key("audit"), "-", "+", "COUNT", 1);
    await redis.xdel(key("audit"), first[0]);
    const refused = await attempt("2021-01-01");
    expect(refused).toMatchObject({
      code: 1,
      said: expect.stringContaining("Nothing was cut off"),
    });
    expect(await redis.xlen(key("audit", "seals"))).toBe(22);
    await expect(stat(file)).rejects.toThrow("ENOENT");
  });

  it("verify betrays a cut that nobody signed, and one that was moved", async () => {
    await using at = await terminal(0);
    const { redis, key } = at.world;
    await aged(at, 5, 5);
    await at.audit("archive", join(at.folder, "a.json"), "--before", "2021-01-01", ...why);
    await sealAll(at.world, at.folder);
    const [next] = await redis.xrange(key("audit", "seals"), "6-0", "6-0");
    const hash = next?.[1].at(-1) ?? "";
    const cut = JSON.parse((await redis.get(key("audit", "archived"))) ?? "") as object;
    await redis.set(key("audit", "archived"), JSON.stringify({ ...cut, seq: 6, hash }));
    expect((await at.audit("verify")).said).toContain(
      "the signature of what was archived is wrong",
    );
    await redis.del(key("audit", "archived"));
    expect(await at.audit("verify")).toMatchObject({
      code: 1,
      said: expect.stringContaining("broken at record 1"),
    });
  });

  /** What a restored copy leaves: Redis as it was, and heads on disk that it doesn't know. */
  async function restored(at: Awaited<ReturnType<typeof terminal>>) {
    const { redis, key } = at.world;
    const names = await redis.keys(`${key.prefix}*`);
    const copy = await Promise.all(names.map(async (name) => redis.dumpBuffer(name)));
    await append(at.world, 5);
    await sealAll(at.world, at.folder);
    await redis.del(...(await redis.keys(`${key.prefix}*`)));
    for (const [n, name] of names.entries()) await redis.restore(name, 0, copy[n] ?? "");
  }

  it("record-gap says what a restored copy lost, and verify names it, with who and why, and ends with 3", async () => {
    await using at = await terminal(3);
    await restored(at);
    expect(await at.audit("verify")).toMatchObject({ code: 1 });
    // The gateway that starts finds the gap by its own head, and goes on after it
    await append(at.world, 2);
    await sealAll(at.world, at.folder);
    const before = await at.audit("verify");
    expect(before).toMatchObject({
      code: 1,
      said: expect.stringContaining("records 4 to 8 were lost"),
    });
    expect(await at.audit("record-gap")).toMatchObject({ code: 64 });
    const order = ["record-gap", "--who", "ada", "--why", "the copy of Monday"];
    expect(await at.audit(...order)).toMatchObject({ code: 0 });
    await sealAll(at.world, at.folder);
    const after = await at.audit("verify");
    expect(after).toMatchObject({ code: 3 });
    expect(after.said).toContain("intact but for what is recorded as lost");
    expect(after.said).toContain("Records 4 to 8 are lost, as ada recorded: the copy of Monday");
    expect(await at.audit(...order)).toEqual({ code: 0, said: "No loss is left to record.\n" });
    // An export says the same, and another loss is one again
    const file = join(at.folder, "export.json");
    await at.audit("export", file);
    expect((await at.audit("verify", file)).code).toBe(3);
    await restored(at);
    expect((await at.audit("verify")).code).toBe(1);
  });

  it("record-gap before the gateways run counts for the gap that they find; of a head that another sealer overtook, it names what may differ", async () => {
    await using at = await terminal(3);
    await restored(at);
    const order = ["record-gap", "--who", "ada", "--why", "the copy of Monday"];
    expect((await at.audit(...order)).said).toContain("it once reached record 8");
    await sealAll(at.world, at.folder);
    expect((await at.audit("verify")).code).toBe(3);
    await restored(at);
    // A gateway that had no newer head
    await using other = await testFolder();
    await append(at.world, 9);
    await sealAll(at.world, other.path);
    const { code, said } = await at.audit("verify");
    expect({ code, said }).toMatchObject({
      code: 1,
      said: expect.stringContaining("anchored elsewhere"),
    });
    expect((await at.audit(...order)).code).toBe(0);
    expect(await at.audit("verify")).toMatchObject({
      code: 3,
      said: expect.stringMatching(/Records 11 to 15, with the head 15:[0-9a-f]{8}…, are lost/),
    });
  });

  it("record-gap takes nothing that was changed for a loss", async () => {
    await using at = await terminal(3);
    await at.world.redis.xdel(at.world.key("audit"), at.ids[1] ?? "");
    const { code, said } = await at.audit("record-gap", "--who", "mallory", "--why", "backup");
    expect({ code, said }).toMatchObject({
      code: 2,
      said: expect.stringContaining("nothing was recorded"),
    });
    expect((await at.audit("verify")).code).toBe(1);
    // Nor does a record that someone puts there by hand
    const lost = [{ from: 2, to: 2 }];
    await append(at.world, 1, () => ({
      what: "audit-gap-recorded",
      who: "mallory",
      why: "backup",
      lost,
    }));
    await sealAll(at.world, at.folder);
    expect((await at.audit("verify")).code).toBe(1);
  });

  it("ends with 2 when it can't tell", async () => {
    await using at = await terminal(0);
    expect((await at.audit("verify")).code).toBe(2);
    expect(await at.audit("head")).toEqual({ code: 2, said: "Nothing is sealed yet.\n" });
    expect((await at.audit("verify", "/no/such/file")).code).toBe(2);
    expect((await at.audit("verify", "--what")).code).toBe(64);
    expect((await at.audit()).said).toContain("usage: node gatehouse.mjs audit");
    expect(await runAudit(["verify"], { access: noRedis, write: () => {} })).toBe(2);
  });
});
