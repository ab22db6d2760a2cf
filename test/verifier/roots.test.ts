import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { pem } from "../../sandbox/evidence/der-writer.ts";
import { readRoots, vendorRoots } from "../../src/verifier/roots.ts";

/** A copy of the shipped files, with one of them changed. */
async function changed(file: string, change: (text: string) => string) {
  const folder = await mkdtemp(join(tmpdir(), "gatehouse-roots-"));
  await cp(join(import.meta.dirname, "../../src/verifier/roots"), folder, { recursive: true });
  const path = join(folder, file);
  await writeFile(path, change(await readFile(path, "latin1")));
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
}

const end = "-----END CERTIFICATE-----\n";
const certificatesIn = (text: string) => text.split(end).filter(Boolean);

describe("the vendors' roots", () => {
  it("are those whose fingerprints stand in the source, wherever they stand in their file", async () => {
    await using at = await changed("genoa.pem", (text) =>
      [...certificatesIn(text).toReversed(), ""].join(end),
    );
    expect(readRoots(at.folder)).toEqual(vendorRoots);
  });

  it.each([
    ["with a letter changed", "intel.pem", (text: string) => text.replace("MIIC", "MIIB")],
    ["that lacks one", "milan.pem", (text: string) => `${certificatesIn(text)[0]}${end}`],
    ["with a stranger's in its place", "turin.pem", () => pem(vendorRoots.amd.Genoa.ark)],
    ["with words between", "genoa.pem", (text: string) => text.replace(end, `${end}A word.\n`)],
    ["with nothing in it", "intel.pem", () => ""],
  ])("let nothing start from a file %s", async (_what, file, change) => {
    await using at = await changed(file, change);
    expect(() => readRoots(at.folder)).toThrow(/is missing or damaged in \w+\.pem/);
  });
});
