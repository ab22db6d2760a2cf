import { describe, expect, it } from "vitest";
import { readSources, type Sources } from "./sources.ts";

const production = readSources(["src"]);

const withoutComments = (text: string) =>
  text.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/(^|\s)\/\/.*$/gm, "");

function filesWith(pattern: RegExp, sources: Sources): readonly string[] {
  return [...sources]
    .filter(([, text]) => pattern.test(withoutComments(text)))
    .map(([path]) => path);
}

/** A program started, or a text run as one. */
const runs =
  /child_process|\bexecSync\b|\beval\s*\(|new Function\b|from "node:vm"|\.runIn\w*Context\(/;
/** A template string with something put into an address or into a path of the service. */
const builds = /`[^`]*(https?:\/\/|wss?:\/\/|\/v1\/)[^`]*\$\{|`[^`]*\$\{[^`]*\/v1\//;

describe("production code", () => {
  it("starts no program and runs no text, so that no name can become a command", () => {
    expect(filesWith(runs, production)).toEqual([]);
  });

  it("puts no address together from texts: paths are templates, filled with checked ids alone", () => {
    expect(filesWith(builds, production)).toEqual([]);
  });

  it("would be named", () => {
    const planted = new Map([
      ["src/a.ts", 'import { exec } from "node:child_process";'],
      ["src/b.ts", "const address = `https://${host}/x`;"],
      ["src/c.ts", "call(`/v1/vms/${id}/restart`);"],
      ["src/d.ts", "// eval(text) and `https://${host}`"],
      ["src/e.ts", 'const say = "https://docs.example/x";'],
      ["src/f.ts", "new Function(text)"],
    ]);
    expect(filesWith(runs, planted)).toEqual(["src/a.ts", "src/f.ts"]);
    expect(filesWith(builds, planted)).toEqual(["src/b.ts", "src/c.ts"]);
  });
});
