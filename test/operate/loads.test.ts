import { expect, it } from "vitest";
import { readSources, runtimeImportsOf } from "../structure/sources.ts";

const sources = readSources(["src"]);

/** The packages that are there once this file was imported, what it imports later left out. */
function packagesOf(entry: string): ReadonlySet<string> {
  const packages = new Set<string>();
  const seen = new Set<string>();
  const walk = (path: string): void => {
    if (seen.has(path)) return;
    seen.add(path);
    const text = (sources.get(path) ?? "").replaceAll(/\bimport\(\s*["'][^"']+["']\s*\)/g, "");
    for (const [, name = ""] of text.matchAll(
      /^(?:import|export) (?!type)[^"';]*["']([^."'][^"']*)["']/gm,
    ))
      packages.add(name);
    for (const target of runtimeImportsOf(path, text)) walk(target);
  };
  walk(entry);
  return packages;
}

it("a worker never loads Bolt", () => {
  for (const entry of ["src/operate/process.ts", "src/operate/start.ts", "src/operate/worker.ts"]) {
    const packages = packagesOf(entry);
    expect(packages).toContain("zod");
    expect({ entry, has: packages.has("@slack/bolt") }).toEqual({ entry, has: false });
  }
  expect(packagesOf("src/operate/gateway.ts")).toContain("@slack/bolt");
});
