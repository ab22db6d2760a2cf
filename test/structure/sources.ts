import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";

/** Path from the project's root (`src/log/log.ts`) to text. The rules take it, so that a test can plant a violation. */
export type Sources = ReadonlyMap<string, string>;

export const root = fileURLToPath(new URL("../..", import.meta.url));

/** Every file under these folders whose name ends like that. */
export function readSources(folders: readonly string[], ending = ".ts"): Sources {
  const paths = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
      .map((entry) => posix.join(entry.parentPath.slice(root.length), entry.name)),
  );
  return new Map(paths.toSorted().map((path) => [path, readFileSync(join(root, path), "utf8")]));
}

const importing =
  /^\s*(?:import|export)\s(?:[^"';]*?\sfrom\s+)?["']([^"'\n]+)["']|\bimport\(\s*["']([^"'\n]+)["']\s*\)/gm;

function importedNames(text: string): readonly string[] {
  const code = text.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/^\s*\/\/.*$/gm, "");
  return [...code.matchAll(importing)].map((match) => match[1] ?? match[2] ?? "");
}

/** The project's own files that this one imports, types included. */
export function importsOf(path: string, text: string): readonly string[] {
  return importedNames(text)
    .filter((name) => name.startsWith("."))
    .map((name) => posix.join(posix.dirname(path), name));
}

/** The packages that a file imports, without what is Node's own: `@slack/bolt`, `zod`. */
export function packagesOf(text: string): readonly string[] {
  return importedNames(text)
    .filter((name) => !name.startsWith(".") && !name.startsWith("node:"))
    .map((name) => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name);
}

/** Only those that are there when the program runs: `import type` is erased. */
export function runtimeImportsOf(path: string, text: string): readonly string[] {
  return importsOf(
    path,
    text.replaceAll(/^\s*(import|export) type\s[^"';]*["'][^"'\n]+["']/gm, ""),
  );
}
