import { describe, expect, it } from "vitest";
import { readSources, type Sources } from "./sources.ts";

/**
 * Where text is parsed that Gatehouse doesn't store in Redis: any JSON, without a type; its own
 * package.json; values that this process has just written.
 */
const parsersOfOthers = new Set([
  "src/text/parse-json.ts",
  "src/config/version.ts",
  "src/features/mcp/mcp.ts",
  "src/messages/buttons.ts",
  "src/talk/command-words.ts",
]);

const parsersIn = (sources: Sources) =>
  [...sources].filter(([, text]) => /\bJSON\.parse\(/.test(text)).map(([path]) => path);

/** The constants that are records, by the file that declares each. */
const recordsIn = (sources: Sources) =>
  [...sources].flatMap(([path, text]) =>
    [...text.matchAll(/const (\w+)(?:: \w+)? = defineRecord\b/g)].map(([, name = ""]) => ({
      path,
      name,
    })),
  );

const source = readSources(["src"]);

describe("what is stored in Redis", () => {
  it("is read by the schema of its record, never by a cast", () => {
    expect(parsersIn(source).filter((path) => !parsersOfOthers.has(path))).toEqual([]);
  });

  it("is a record whose test says what a value that can't be read means", () => {
    const tests = [...readSources(["test"]).values()];
    const untested = recordsIn(source).filter(
      ({ name }) => !tests.some((text) => new RegExp(`\\b${name}\\b`).test(text)),
    );
    expect(untested).toEqual([]);
    expect(recordsIn(source).length).toBeGreaterThan(10);
  });

  it("would be named", () => {
    const planted = new Map([
      ["src/a.ts", "const freeze = JSON.parse(text) as Freeze;"],
      ["src/b.ts", "export const lamp = defineRecord<Lamp>({ name, schema });"],
    ]);
    expect(parsersIn(planted)).toEqual(["src/a.ts"]);
    expect(recordsIn(planted)).toEqual([{ path: "src/b.ts", name: "lamp" }]);
  });
});
