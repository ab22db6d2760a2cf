import { describe, expect, it } from "vitest";
import { packagesOf, readSources, runtimeImportsOf } from "./sources.ts";

const sources = readSources(["src"], "");

/** Everything that is loaded with these files before one of their functions runs, types excluded. */
function loadedWith(entries: readonly string[]) {
  const files = new Set(entries);
  // A Set also visits what is added while it is visited.
  for (const file of files)
    for (const imported of runtimeImportsOf(file, withoutLater(sources.get(file) ?? "")))
      files.add(imported);
  const texts = [...files].map((file) => withoutLater(sources.get(file) ?? ""));
  return { files: [...files], packages: [...new Set(texts.flatMap((text) => packagesOf(text)))] };
}

/** Without the imports that a function makes when it is called. */
const withoutLater = (text: string) =>
  text
    .replaceAll(/\bimport\([^)]*\)/g, "")
    .replaceAll(/^\s*import type\s[^"';]*["'][^"'\n]+["']/gm, "");

const commandLine = ["src/main.ts", "src/cli/command-line.ts", "src/cli/programs.ts"];

describe("what a person waits for", () => {
  it("loads no package and few files: the version, the help, and Tab", () => {
    for (const entries of [commandLine, [...commandLine, "src/cli/completion.ts"]]) {
      const { files, packages } = loadedWith(entries);
      expect(packages).toEqual([]);
      expect(files.length, files.join(" ")).toBeLessThan(15);
    }
  });

  it("loads neither commands nor features: a Tab for a VM", () => {
    const forVms = ["src/cli/call-api.ts", "src/config/api-access.ts", "src/slack/json.ts"];
    const { files, packages } = loadedWith([...commandLine, "src/cli/completion.ts", ...forVms]);
    expect(packages.toSorted()).toEqual(["ipaddr.js", "zod"]);
    expect(files.length, files.join(" ")).toBeLessThan(45);
    expect(
      files.filter((file) => /^src\/(core|commands|features|operate\/[^n])/.test(file)),
    ).toEqual([]);
  });

  it("would be noticed: the features load everything", () => {
    const { files, packages } = loadedWith(["src/features/index.ts"]);
    expect(packages).toContain("ioredis");
    expect(files.length).toBeGreaterThan(200);
  });
});
