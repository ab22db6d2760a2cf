import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { families, familyOf, rows } from "../faults/rows/index.ts";
import { anotherFormat } from "../faults/rows/process/another-format.ts";
import { type Patch, patchProblem } from "../faults/stage/patch.ts";
import { documentFile, explainRows, readPart } from "../faults/suite/document.ts";
import { mutations } from "../faults/suite/mutations.ts";
import { importsOf, readSources, root, type Sources } from "./sources.ts";

const document = readFileSync(join(root, documentFile), "utf8");
/** The formatter aligns tables and wraps nothing else. */
const unaligned = (text: string) => text.trim().replaceAll(/-{3,}/g, "---").replaceAll(/ +/g, " ");

describe("docs/faults.md", () => {
  it("explains each row as the row itself does; npm run faults -- --list --write brings it up to date", () => {
    expect(unaligned(readPart(document, "the rows"))).toBe(unaligned(explainRows()));
  });

  it("tells of no row in its last run that isn't there", () => {
    const told = [
      ...readPart(document, "the last run").matchAll(/^\| (\w+) +\| (?:holds|BROKEN|not run)/gm),
    ];
    const known = new Set(["recovery", "campaign", ...rows.map(({ id }) => id)]);
    expect(told.length).toBeGreaterThan(100);
    expect(told.flatMap(([, id = ""]) => (known.has(id) ? [] : [id]))).toEqual([]);
  });
});

describe("the rows", () => {
  it("have ids of their own that begin with the letters of a family", () => {
    const ids = rows.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const letters = families.map(({ letter }): string => letter);
    expect(ids.filter((id) => !letters.includes(familyOf(id)))).toEqual([]);
    expect(letters.filter((letter) => !ids.some((id) => familyOf(id) === letter))).toEqual([]);
  });
});

/** Imports of the checker that lead out of its own room. */
function strayImports(sources: Sources): readonly string[] {
  return [...sources].flatMap(([path, text]) =>
    importsOf(path, text)
      .filter((target) => !target.startsWith("test/faults/check/"))
      .map((target) => `${path} imports ${target}`),
  );
}

describe("the checker", () => {
  it("imports nothing of Gatehouse, nor of the suite: what it believes it has read itself", () => {
    const sources = readSources(["test/faults/check"]);
    expect(sources.size).toBeGreaterThan(3);
    expect(strayImports(sources)).toEqual([]);
  });

  it("would be named", () => {
    const planted = new Map([
      ["test/faults/check/a.ts", 'import type { State } from "../../../src/requests/states.ts";'],
      ["test/faults/check/b.ts", 'import { looking } from "../../support/looking.ts";'],
      ["test/faults/check/c.ts", 'import { a } from "./a.ts";'],
    ]);
    expect(strayImports(planted)).toEqual([
      "test/faults/check/a.ts imports src/requests/states.ts",
      "test/faults/check/b.ts imports test/support/looking.ts",
    ]);
  });
});

const problems = (patches: readonly Patch[], sources: Sources) =>
  patches.flatMap((patch) => patchProblem(patch, sources.get(patch.file)) ?? []);

describe("patches of the source", () => {
  const sources = readSources(["src"]);

  it("fit: what a mutant or another format changes stands there exactly once", () => {
    expect(problems([...mutations, ...anotherFormat], sources)).toEqual([]);
  });

  it("of each mutant are noticed by rows that are there", () => {
    const known = new Set(rows.map(({ id }) => id));
    const named = mutations.flatMap((mutation) => mutation.rows.split(","));
    expect(named.filter((id) => !known.has(id))).toEqual([]);
  });

  it("are named when they fit no more", () => {
    const patch = { file: "src/a.ts", was: "if (a) return", is: "" };
    const twice = new Map([["src/a.ts", "if (a) return; if (a) return;"]]);
    expect(problems([patch], new Map())).toEqual(["there is no src/a.ts"]);
    expect(problems([patch], twice)).toEqual(["src/a.ts has 2 times, not once: if (a) return"]);
    expect(problems([patch], new Map([["src/a.ts", "if (a) return"]]))).toEqual([]);
  });
});
