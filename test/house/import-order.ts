import { importsOf, runtimeImportsOf, type Sources } from "./sources.ts";

/** Left to right: a file imports from its own place and from places to its left. */
const places = [
  "errors",
  "config",
  "log",
  "redis",
  "telemetry",
  "messages",
  "charts",
  "compute",
  "inventory",
  "attestation",
  "registry",
  "commands",
  "policy",
  "approvals",
  "audit",
  "digests",
  "requests",
  "rolls",
  "outages",
  "jobs",
  "slack",
  "main",
  "sandbox",
];

/** Files that stand directly in src/, where their name alone doesn't say their place. All others belong to `main`. */
const rootFiles: Readonly<Record<string, string>> = {
  nearest: "errors",
  canonical: "errors",
  runtime: "errors",
  "redis-address": "config",
  environment: "config",
  "policy-file": "config",
  "policy-schema": "config",
  "policy-timing": "config",
  "policy-values": "config",
  scrub: "log",
  rounds: "log",
  "redis-keys": "redis",
  "redis-check": "redis",
  health: "telemetry",
};

/** Programs of their own: they see what `main` sees, and nobody imports them. */
const programs = new Set(["src/main.ts", "src/registry/derive.ts"]);

function placeOf(path: string): string {
  if (programs.has(path)) return "main";
  const [, first = "", ...rest] = path.split("/");
  if (rest.length > 0) return first;
  const name = first.replace(/\.ts$/, "");
  return rootFiles[name] ?? (places.includes(name) ? name : "main");
}

/** Sentences that name each import to the right, from a program, of the sandbox, or of a place nobody knows. */
export function orderProblems(sources: Sources): readonly string[] {
  return [...sources].flatMap(([path, text]) =>
    importsOf(path, text).flatMap((target) => {
      const problem = importProblem(path, target);
      return problem === undefined ? [] : [`${path} imports ${target}: ${problem}`];
    }),
  );
}

function importProblem(path: string, target: string): string | undefined {
  if (!target.startsWith("src/")) return "that is outside src";
  const from = places.indexOf(placeOf(path));
  const to = places.indexOf(placeOf(target));
  if (from < 0 || to < 0) return "a folder without a place in the import order";
  if (programs.has(target)) return "that is a program, nobody imports it";
  if (to <= from) return undefined;
  return `${places[to]} stands to the right of ${places[from]}`;
}

/** Each circle, as the files in their order: `a → b → a`. Types may refer to each other, they are erased. */
export function cycles(sources: Sources): readonly string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const walk = (path: string, above: readonly string[]): void => {
    const seen = above.indexOf(path);
    if (seen >= 0) found.push([...above.slice(seen), path].join(" → "));
    if (seen >= 0 || done.has(path)) return;
    for (const target of runtimeImportsOf(path, sources.get(path) ?? ""))
      walk(target, [...above, path]);
    done.add(path);
  };
  for (const path of sources.keys()) walk(path, []);
  return found;
}
