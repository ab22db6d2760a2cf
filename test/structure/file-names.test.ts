import { describe, expect, it } from "vitest";
import { readSources, type Sources } from "./sources.ts";

function oddlyNamed(sources: Sources): readonly string[] {
  // The layer `src/core` is the one folder of that name: what features plug into
  const empty = /(^|[/.-])(utils?|helpers?|common|core|manager|handler|data|info)([/.-]|$)/;
  return [...sources.keys()].filter(
    (path) =>
      !/^[a-z0-9/-]+((\.system)?\.test)?\.ts$/.test(path) ||
      empty.test(path.replace(/^src\/core\//, "")),
  );
}

describe("files", () => {
  it("are named in kebab-case, after what is in them", () => {
    expect(oddlyNamed(readSources(["src", "sandbox", "demo", "scripts", "test/faults"]))).toEqual(
      [],
    );
  });

  it("are named when one breaks the rules", () => {
    const planted = [
      "src/slack/utils.ts",
      "src/jobs/jobManager.ts",
      "src/common/a.ts",
      "src/jobs/core/a.ts",
      "src/jobs/queue-helpers.ts",
    ];
    expect(oddlyNamed(new Map(planted.map((path) => [path, ""])))).toEqual(planted);
  });
});
