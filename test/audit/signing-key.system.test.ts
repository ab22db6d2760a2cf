import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { openSigningKey } from "../../src/audit/signing-key.ts";
import { testFolder } from "./trail-of.ts";

describe("the signing key", () => {
  it("is whole or not there: a disk that was full when it was made leaves no half of it", async () => {
    await using folder = await testFolder();
    const anchors = path.join(import.meta.dirname, "../../src/audit/signing-key.ts");
    const make = `import(${JSON.stringify(anchors)}).then((all) => all.openSigningKey(${JSON.stringify(folder.path)}))`;
    const limited = ["-c", 'ulimit -f 0; exec "$0" -e "$1"', process.execPath, make];
    await expect(promisify(execFile)("sh", limited)).rejects.toThrow("EFBIG");
    expect(await readdir(folder.path)).toEqual([]);
    const made = openSigningKey(folder.path);
    expect(openSigningKey(folder.path).publicKey).toBe(made.publicKey);
    expect(await readdir(folder.path)).toEqual(["audit-key.pem"]);
  });
});
