import { describe, expect, it } from "vitest";
import { readSources, type Sources } from "./sources.ts";

const maxLines = 500;
const maxFiles = 26;

function tooLong(sources: Sources): readonly string[] {
  return [...sources]
    .map(([path, text]) => [path, text.trimEnd().split("\n").length] as const)
    .filter(([, lines]) => lines > maxLines)
    .map(([path, lines]) => `${path} has ${lines} lines, ${maxLines} is the most`);
}

/** Files of any kind that stand in one folder; what is in folders inside it counts there. */
function crowded(sources: Sources): readonly string[] {
  const rooms = Map.groupBy(sources.keys(), (path) => path.slice(0, path.lastIndexOf("/")));
  return [...rooms]
    .filter(([, paths]) => paths.length > maxFiles)
    .map(([room, paths]) => `${room} has ${paths.length} files, ${maxFiles} is the most`);
}

function oddlyNamed(sources: Sources): readonly string[] {
  const empty = /(^|[/.-])(utils?|helpers?|common|core|manager|handler|data|info)([/.-]|$)/;
  return [...sources.keys()].filter(
    (path) => !/^[a-z0-9/-]+(\.test)?\.ts$/.test(path) || empty.test(path),
  );
}

describe("files", () => {
  it("are short enough to be read at once", () => {
    expect(tooLong(readSources(["src", "sandbox", "scripts", "test/faults"]))).toEqual([]);
  });

  it("stand in rooms that are small enough to be seen at once", () => {
    expect(crowded(readSources(["src", "sandbox"], ""))).toEqual([]);
  });

  it("are named in kebab-case, after what is in them", () => {
    expect(oddlyNamed(readSources(["src", "sandbox", "scripts", "test/faults"]))).toEqual([]);
  });

  it("are named when one breaks the rules", () => {
    expect(tooLong(new Map([["src/long.ts", "\n".repeat(500) + "x"]]))).toEqual([
      "src/long.ts has 501 lines, 500 is the most",
    ]);
    const room = Array.from({ length: 27 }, (_, n) => [`src/jobs/${n}.ts`, ""] as const);
    const inner = ["src/jobs/inner/a.ts", ""] as const;
    expect(crowded(new Map([...room, inner]))).toEqual(["src/jobs has 27 files, 26 is the most"]);
    expect(crowded(new Map([...room.slice(1), inner]))).toEqual([]);
    const planted = [
      "src/slack/utils.ts",
      "src/jobs/jobManager.ts",
      "src/common/a.ts",
      "src/jobs/queue-helpers.ts",
    ];
    expect(oddlyNamed(new Map(planted.map((path) => [path, ""])))).toEqual(planted);
  });
});
