import { describe, expect, it } from "vitest";
import { readSources, type Sources } from "./sources.ts";

const mostLines = 250;

function tooLong(sources: Sources): readonly string[] {
  return [...sources]
    .map(([path, text]) => [path, text.trimEnd().split("\n").length] as const)
    .filter(([, lines]) => lines > mostLines)
    .map(([path, lines]) => `${path} has ${lines} lines, ${mostLines} is the most`);
}

function oddlyNamed(sources: Sources): readonly string[] {
  const empty = /(^|[/.-])(utils?|helpers?|common|core|manager|handler|data|info)([/.-]|$)/;
  return [...sources.keys()].filter(
    (path) => !/^[a-z0-9/-]+(\.test)?\.ts$/.test(path) || empty.test(path),
  );
}

describe("files", () => {
  it("are short enough to be read at once", () => {
    expect(tooLong(readSources(["src"]))).toEqual([]);
  });

  it("are named in kebab-case, after what is in them", () => {
    expect(oddlyNamed(readSources(["src"]))).toEqual([]);
  });

  it("are named when one breaks the rules", () => {
    expect(tooLong(new Map([["src/long.ts", "\n".repeat(250) + "x"]]))).toEqual([
      "src/long.ts has 251 lines, 250 is the most",
    ]);
    const planted = [
      "src/slack/utils.ts",
      "src/jobs/jobManager.ts",
      "src/common/a.ts",
      "src/jobs/queue-helpers.ts",
    ];
    expect(oddlyNamed(new Map(planted.map((path) => [path, ""])))).toEqual(planted);
  });
});
