import { describe, expect, it } from "vitest";
import { readSources, runtimeImportsOf, type Sources } from "./sources.ts";

/** What starts browsers, programs, and other projects' servers. */
const heavy = ["start-program", "browser", "programs"].map((name) => `test/support/${name}.ts`);

/** Tests of `npm test` that start something else than Redis, a sentence each. */
function heavyTests(sources: Sources): readonly string[] {
  const loaded = (file: string, seen: Set<string>): ReadonlySet<string> => {
    if (seen.has(file)) return seen;
    seen.add(file);
    for (const next of runtimeImportsOf(file, sources.get(file) ?? "")) loaded(next, seen);
    return seen;
  };
  return [...sources]
    .filter(([file]) => file.endsWith(".test.ts") && !file.endsWith(".system.test.ts"))
    .flatMap(([file, text]) => {
      const starts = [...loaded(file, new Set())].find((one) => heavy.includes(one));
      if (starts !== undefined) return [`${file} loads ${starts}`];
      return text.includes("process.execPath") ? [`${file} starts Node.js`] : [];
    });
}

describe("npm test", () => {
  it("starts nothing but Redis: what starts more is a *.system.test.ts", () => {
    const sources = readSources(["test"]);
    const light = new Map([...sources].filter(([file]) => !file.startsWith("test/structure/")));
    expect(heavyTests(light)).toEqual([]);
  });

  it("names a test that starts a program", () => {
    const planted = new Map([
      ["test/a.test.ts", 'import { startProgram } from "./support/start-program.ts";'],
      ["test/b.system.test.ts", 'import { startProgram } from "./support/start-program.ts";'],
      ["test/c.test.ts", "spawn(process.execPath)"],
    ]);
    expect(heavyTests(planted)).toEqual([
      "test/a.test.ts loads test/support/start-program.ts",
      "test/c.test.ts starts Node.js",
    ]);
  });
});
