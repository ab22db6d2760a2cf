import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runAudit } from "../../src/audit/cli.ts";
import { createTrail } from "../../src/audit/trail.ts";
import { testRedis } from "../support/with-redis.ts";
import { append, sealAll, testFolder } from "./trail-of.ts";

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
        redisUrl: world.url,
        namespace: world.key.namespace,
        dataDir: folder.path,
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
    const [last] = await createTrail(at.world.redis, at.world.key).recordsBefore(undefined, 1);
    expect(last?.record).toBe('{"what":"audit-export","who":"terminal","from":1,"to":4}');
    let said = "";
    const alone = { redisUrl: undefined, write: (text: string) => void (said += text) };
    expect(await runAudit(["verify", file], alone)).toBe(0);
    expect(said).toContain("The audit trail is intact: 4 records verified.");
    await writeFile(file, (await readFile(file, "utf8")).replace("settled", "settler"));
    expect(await runAudit(["verify", file], alone)).toBe(1);
    expect(said).toContain("broken at record 1 ");
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

  it("ends with 2 when it can't tell", async () => {
    await using at = await terminal(0);
    expect((await at.audit("verify")).code).toBe(2);
    expect(await at.audit("head")).toEqual({ code: 2, said: "Nothing is sealed yet.\n" });
    expect((await at.audit("verify", "/no/such/file")).code).toBe(2);
    expect((await at.audit("verify", "--from", "1e3")).said).toBe(
      "1e3 is not the number of a record\n",
    );
    expect((await at.audit("verify", "--what")).code).toBe(64);
    expect((await at.audit()).said).toContain("usage: node gatehouse.mjs audit");
    const noRedis = { redisUrl: undefined, write: () => {} };
    expect(await runAudit(["verify"], noRedis)).toBe(2);
  });
});
