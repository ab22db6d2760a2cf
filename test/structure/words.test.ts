import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readSources, root, type Sources } from "./sources.ts";

// spelled so that this file doesn't break its own rule
const unfinished = new RegExp(
  `\\b(${["TO", "FIX", "X"].map((word) => word + { TO: "DO", FIX: "ME", X: "XX" }[word]).join("|")})\\b`,
);

function linesWith(pattern: RegExp, sources: Sources): readonly string[] {
  return [...sources].flatMap(([path, text]) =>
    text.split("\n").flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}`] : [])),
  );
}

describe("the code", () => {
  it("holds no notes about unfinished work", () => {
    expect(
      linesWith(unfinished, readSources(["src", "sandbox", "demo", "scripts", "test"])),
    ).toEqual([]);
    expect(linesWith(unfinished, readSources(["docs"], ".md"))).toEqual([]);
    expect(
      linesWith(unfinished, new Map([["a.ts", `fine\n// ${["TO", "DO"].join("")} later`]])),
    ).toEqual(["a.ts:2"]);
  });

  it("reads the environment in one place, so that every problem is told at the start", () => {
    const readers = /\bprocess\s*\.\s*env\b|\benv\b.*from "node:process"/;
    const production = new Map(readSources(["src"]));
    production.delete("src/config/process-env.ts");
    expect(linesWith(readers, production)).toEqual([]);
    expect(linesWith(readers, new Map([["a.ts", "const a = process.env.HOME"]]))).toEqual([
      "a.ts:1",
    ]);
  });

  it("leaves no <word> in a mrkdwn template, which Slack would read as a link", () => {
    const tag = /\bmd`(?:[^`\\$]|\\.|\$\{[^}]*\})*<[a-z]/;
    expect(linesWith(tag, readSources(["src"]))).toEqual([]);
    const planted = "const a = md`Type \\`/vm show <vm>\\` again`";
    expect(linesWith(tag, new Map([["a.ts", planted]]))).toEqual(["a.ts:1"]);
  });

  it("switches no type check off", () => {
    const off = /@ts-(ignore|nocheck|expect-error)/;
    const all = new Map(readSources(["src", "sandbox", "demo", "scripts", "test"]));
    // Prove that something does not compile
    all.delete("test/registry/define.test.ts");
    all.delete("test/core/request/stage.test.ts");
    all.delete("test/core/permit/permit.test.ts");
    expect(linesWith(off, all)).toEqual([]);
    expect(linesWith(off, new Map([["a.ts", ["// @ts", "ignore"].join("-")]]))).toEqual(["a.ts:1"]);
  });
});

/** Documents that a text cites and that are not there, each as `file: document`. */
function missingDocuments(sources: Sources): readonly string[] {
  return [...sources].flatMap(([path, text]) =>
    [...text.matchAll(/[\w/-]*[a-z]+\.md\b/g)]
      .map(([document]) => document)
      .filter((document) => !documents.some((one) => `/${one}`.endsWith(`/${document}`)))
      .map((document) => `${path}: ${document}`),
  );
}

const documents = [
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  ...readSources(["docs", "sandbox", "test"], ".md").keys(),
];

describe("comments", () => {
  it("cite no document that isn't in the repository", () => {
    const sources = new Map(readSources(["src", "sandbox", "demo", "scripts", "test"]));
    sources.delete("test/structure/words.test.ts");
    expect(missingDocuments(sources)).toEqual([]);
    expect(
      missingDocuments(new Map([["a.ts", "// plan.md, docs/security.md, README.md"]])),
    ).toEqual(["a.ts: plan.md"]);
  });
});

/** The dependencies that a README text doesn't name in code marks. */
function unnamed(readme: string, dependencies: readonly string[]): readonly string[] {
  return dependencies.filter((name) => !readme.includes(`\`${name}\``));
}

describe("the README", () => {
  it("names each dependency, with its reason", () => {
    const manifest: { dependencies: object; devDependencies: object } = JSON.parse(
      readFileSync(join(root, "package.json"), "utf8"),
    );
    const all = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies });
    expect(unnamed(readFileSync(join(root, "README.md"), "utf8"), all)).toEqual([]);
    expect(unnamed("uses `zod` to check", ["zod", "yaml"])).toEqual(["yaml"]);
  });
});
