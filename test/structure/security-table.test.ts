import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { rows as faultRows } from "../faults/rows/index.ts";
import { root } from "./sources.ts";

/** The numbers of the checklist, and one more: the API. */
const wanted = Array.from({ length: 37 }, (_, index) => index + 1).filter(
  (number) => ![14, 15, 22, 35].includes(number),
);

interface World {
  /** The text of a test file, or undefined when it isn't there. */
  read(file: string): string | undefined;
  /** Ids of the rows that are really run. */
  rows: ReadonlySet<string>;
}

/** What is wrong with the table, a sentence each. */
function problemsIn(document: string, { read, rows }: World): string[] {
  const lines = document.split("\n").filter((line) => /^\| \d+ +\|/.test(line));
  const table = lines.map((line) => line.split("|").map((cell) => cell.trim()));
  const numbers = table.map(([, number]) => Number(number));
  const missing = wanted
    .filter((number) => numbers.filter((one) => one === number).length !== 1)
    .map((number) => `${number} is not there once`);
  const others = numbers
    .filter((number) => !wanted.includes(number))
    .map((number) => `${number} is no number of the list`);
  const named = table.flatMap(([, number, control = "", held = ""]) => {
    const about = (what: string) => `${number}: ${what}`;
    if (control.length < 20) return [about("says nothing of what is done")];
    if (held === "") return [about("names no test")];
    return held.split("<br>").flatMap((one) => proofProblems(one, { read, rows }).map(about));
  });
  return [...missing, ...others, ...named];
}

function proofProblems(proof: string, { read, rows }: World): string[] {
  const [, where, what = ""] = /^`([^`]+)`: (.+)$/.exec(proof) ?? [];
  if (where === undefined) return [`“${proof}” names neither a test nor a row`];
  if (where === "npm run faults") {
    const ids = what.split(",").map((id) => id.trim());
    return ids.filter((id) => !rows.has(id)).map((id) => `there is no row ${id} that runs`);
  }
  const text = where.endsWith(".test.ts") ? read(where) : undefined;
  if (text === undefined) return [`there is no ${where}`];
  // A title stands in one string, right after the bracket that opens the test; its first words are enough
  const words = what.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(String.raw`\(\s*["\x60]${words}\b`).test(text)
    ? []
    : [`${where} has no test “${what}”`];
}

const here: World = {
  read: (file) =>
    existsSync(join(root, file)) ? readFileSync(join(root, file), "utf8") : undefined,
  rows: new Set(faultRows.map(({ id }) => id)),
};

describe("docs/security.md", () => {
  it("names for each number of the checklist what is done, and tests and rows that are there", () => {
    expect(problemsIn(readFileSync(join(root, "docs/security.md"), "utf8"), here)).toEqual([]);
  });

  it("would be told what is missing", () => {
    const world: World = {
      read: (file) => (file === "test/a.test.ts" ? 'it("holds", f)' : undefined),
      rows: new Set(["S1"]),
    };
    const good = wanted.map(
      (number) =>
        `| ${number} | Something that is done about it. | \`test/a.test.ts\`: holds<br>\`npm run faults\`: S1 |`,
    );
    expect(problemsIn(good.join("\n"), world)).toEqual([]);
    const bad = good.slice(1).join("\n").replace("Something that is done about it.", "");
    expect(problemsIn(bad, world)).toEqual([
      "1 is not there once",
      "2: says nothing of what is done",
    ]);
    const worse = [
      ...good,
      "| 14 | Something that is done about it. | `test/b.test.ts`: x<br>`test/a.test.ts`: no<br>`npm run faults`: S1, S99<br>trust us |",
    ];
    expect(problemsIn(worse.join("\n"), world)).toEqual([
      "14 is no number of the list",
      "14: there is no test/b.test.ts",
      "14: test/a.test.ts has no test “no”",
      "14: there is no row S99 that runs",
      "14: “trust us” names neither a test nor a row",
    ]);
  });
});
