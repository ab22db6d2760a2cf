import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { families, familyOf, rows } from "../faults/rows/index.ts";
import type { Outcome } from "../faults/rows/row.ts";
import { anotherFormat } from "../faults/rows/process/another-format.ts";
import { type Patch, patchProblem } from "../faults/stage/patch.ts";
import {
  documentFile,
  explainRows,
  readPart,
  replacePart,
  toldRows,
  withoutGoneRows,
} from "../faults/suite/document.ts";
import { mutations } from "../faults/suite/mutations.ts";
import { renderRun, rowLine } from "../faults/suite/report.ts";
import { mutations as verifierMutations } from "../verifier/mutations.ts";
import { importsOf, readSources, root, type Sources } from "./sources.ts";

const document = readFileSync(join(root, documentFile), "utf8");
/** The formatter aligns tables and wraps nothing else. */
const unaligned = (text: string) => text.trim().replaceAll(/-{3,}/g, "---").replaceAll(/ +/g, " ");

describe("docs/faults.md", () => {
  it("explains each row as the row itself does; npm run faults -- --list --write brings it up to date", () => {
    expect(unaligned(readPart(document, "the rows"))).toBe(unaligned(explainRows()));
  });

  it("tells of no row in its last run that isn't there", () => {
    const told = toldRows(document);
    const known = new Set(["recovery", "campaign", ...rows.map(({ id }) => id)]);
    expect(told.length).toBeGreaterThan(100);
    expect(told.filter((id) => !known.has(id))).toEqual([]);
  });

  it("drops rows that have gone from the lists and the table of its last run, and says so", () => {
    const run = (text: string) => replacePart(document, "the last run", text);
    const lists = "Hold with every count at zero (requests/faults): S1 3/12, Q1 1/1, S2 1/3.";
    const table = "| row | result |\n| --- | --- |\n| Q2 | BROKEN |\n| A2 | holds |";
    const old = run(`${lists}\n\nHold, not judged by the checker: R2, Q3.\n\n${table}`);
    expect(toldRows(old)).toEqual(["S1", "Q1", "S2", "R2", "Q3", "Q2", "A2"]);
    expect(readPart(withoutGoneRows(old), "the last run").trim()).toBe(
      [
        "Hold with every count at zero (requests/faults): S1 3/12, S2 1/3.",
        "Hold, not judged by the checker: R2.",
        "| row | result |\n| --- | --- |\n| A2 | holds |",
        "Rows of this run that have gone since: Q1, Q3, Q2.",
      ].join("\n\n"),
    );
    expect(withoutGoneRows(run(table.replace("Q2", "A4")))).toBe(run(table.replace("Q2", "A4")));
  });

  it("names of a row that holds what was counted, and of the others each count above zero", () => {
    const zero = {
      operations: 3,
      faults: 2,
      twice: 0,
      lost: 0,
      falseSuccess: 0,
      falseFailure: 0,
      unknown: 0,
      silent: 0,
      auditGaps: 0,
      findings: [],
      ends: {},
    };
    const lineOf = (id: string, outcome: Partial<Outcome>) => {
      const row = rows.find((one) => one.id === id);
      if (row === undefined) throw new Error(`there is no row ${id}`);
      return rowLine({
        row,
        outcome: { holds: true, wrong: [], notes: [], ...outcome },
        seconds: 1,
      });
    };
    const told = renderRun([
      lineOf("S1", { verdict: zero }),
      lineOf("A2", { verdict: { ...zero, unknown: 1 } }),
      lineOf("R2", { notes: ["a worker refuses"] }),
      lineOf("S4", { verdict: { ...zero, lost: 1 }, holds: false }),
      lineOf("R8c", { holds: false, notRun: "it takes long" }),
    ]);
    expect(told).toBe(
      [
        "Hold with every count at zero: S1.",
        "Hold, with outcomes left to a person (of so many requests): A2 1 of 3.",
        "Hold, not judged by the checker: R2.",
        "The others, with the counts that aren't zero:",
        [
          "| row | result | seen |",
          "| --- | --- | --- |",
          "| S4 | BROKEN | 3/2, lost 1 |",
          "| R8c | not run | it takes long |",
        ].join("\n"),
      ].join("\n\n"),
    );
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

/** Imports of the checker that lead out of its own folder. */
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
      [
        "test/faults/check/a.ts",
        'import type { State } from "../../../src/core/request/stage.ts";',
      ],
      ["test/faults/check/b.ts", 'import { privateRedis } from "../../support/with-redis.ts";'],
      ["test/faults/check/c.ts", 'import { a } from "./a.ts";'],
    ]);
    expect(strayImports(planted)).toEqual([
      "test/faults/check/a.ts imports src/core/request/stage.ts",
      "test/faults/check/b.ts imports test/support/with-redis.ts",
    ]);
  });
});

const problems = (patches: readonly Patch[], sources: Sources) =>
  patches.flatMap((patch) => patchProblem(patch, sources.get(patch.file)) ?? []);

describe("patches of the source", () => {
  const sources = readSources(["src"]);

  it("fit: what a mutant or another format changes stands there exactly once", () => {
    const patches = [...mutations, ...verifierMutations, ...anotherFormat];
    expect(problems(patches, sources)).toEqual([]);
    expect(verifierMutations.length).toBeGreaterThan(90);
  });

  it("name rows that are there, which notice each mutant", () => {
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
