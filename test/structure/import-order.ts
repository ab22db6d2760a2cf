import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { importsOf, packagesOf, root, type Sources } from "./sources.ts";

/**
 * The layers of `src`, lowest first: a file imports from its own layer and from layers above it in this list. A layer inside a
 * folder has a place of its own; files beside it stand where the folder stands. Whatever isn't in a listed layer is a mistake.
 */
const layers = [
  "errors.ts",
  "deadline.ts",
  "regular-file.ts",
  "text",
  "verifier",
  "config",
  "log",
  "redis",
  "queue",
  "messages",
  "fleet/compute",
  "fleet/charts",
  "fleet/inventory",
  "fleet",
  "attestation",
  "audit",
  "registry",
  "slack/json.ts",
  "slack/web-answer.ts",
  "slack/web.ts",
  "slack/response-url.ts",
  "slack/shared-channels.ts",
  "slack/refused-message.ts",
  "slack/error-reply.ts",
  "slack/people",
  "slack/receive",
  "slack",
  "monitor/known-records.ts",
  "monitor/status-records.ts",
  "core/failpoints.ts",
  "core/permit",
  "core/request",
  "core/submit",
  "core/perform",
  "core/cards",
  "core/facts",
  "core/events",
  "core/deliver",
  "core",
  "monitor",
  "commands",
  "talk",
  "api",
  "features/define-feature.ts",
  "features",
  "operate",
  "cli",
  "features/index.ts",
  "main.ts",
];

/**
 * The sandbox is a package with layers of its own, in the same way. What the browser loads comes before the servers, so
 * that it can't import them: from Slack it sees what a person sees, what they can do, and how fields are read.
 */
const sandboxLayers = [
  "message-of.ts",
  "random.ts",
  "listen.ts",
  "find-program.ts",
  "ensure-redis.ts",
  "killable.ts",
  "evidence",
  "compute",
  "slack/seen.ts",
  "slack/actions.ts",
  "slack/fields.ts",
  "page/around.ts",
  "page/gallery.ts",
  "page/browser/dom",
  "page/browser/text",
  "page/browser/elements",
  "page/browser/blocks",
  "page/browser/panes",
  "page/browser",
  "slack/blocks",
  "slack/state",
  "slack/deliver",
  "slack/web-api",
  "slack/describe-seen.ts",
  "slack/acts",
  "slack",
  "page",
  "slack/main.ts",
  "examples",
];

/** Gatehouse between the two sandboxes: it sees all of `src`, and of the sandbox what its package.json exports. */
const demoLayers = [
  "world.ts",
  "agent.ts",
  "programs.ts",
  "demo-world.ts",
  "guide.ts",
  "cards",
  "evidence-levers.ts",
  "weather.ts",
  "killable-worker.ts",
  "worker.ts",
  "demo.ts",
  "tour",
];

const sandbox = JSON.parse(readFileSync(join(root, "sandbox/package.json"), "utf8")) as {
  name: string;
  exports: Record<string, string>;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
};
const entryPoints = Object.values(sandbox.exports).map((file) => posix.join("sandbox", file));

/** Programs of their own: they see what `main.ts` sees, and no file imports them. */
const programs = new Set([
  "src/main.ts",
  "scripts/derive.ts",
  "sandbox/compute/main.ts",
  "sandbox/slack/main.ts",
  "sandbox/examples/hello/app.ts",
  "demo/tour/main.ts",
  "demo/demo.ts",
  "demo/worker.ts",
]);

/** The longest layer whose name begins the path. */
function layerOf(path: string, order: readonly string[]): string | undefined {
  const inside = path.replace(/^(src|sandbox|demo)\//, "");
  return order
    .filter((layer) => inside === layer || inside.startsWith(`${layer}/`))
    .toSorted((a, b) => b.length - a.length)[0];
}

/** The folders and files of `src` itself, lowest first; a folder stands where its last layer does, and the list of features with them. */
export function topLayers(): readonly string[] {
  const tops = layers
    .filter((layer) => layer !== "features/index.ts")
    .map((layer) => layer.split("/")[0] ?? layer);
  return tops
    .filter((top, place) => tops.lastIndexOf(top) === place)
    .map((top) => top.replace(/\.ts$/, ""));
}

/**
 * A sentence for each import that points to a later layer, to a program, out of `src`, or from a place that is no layer.
 * The sandbox sees only itself and the packages that its package.json names. The demo may import all of `src` and the sandbox's
 * entry points, never the tests; `scripts` may import `src`. Nothing else imports the demo and the scripts.
 */
export function orderProblems(sources: Sources): readonly string[] {
  return [...sources].flatMap(([path, text]) => {
    const problems = [
      ...importsOf(path, text).map((target) => [target, problemOf(path, target)]),
      ...packagesOf(text).map((name) => [name, packageProblem(path, name)]),
    ];
    return problems.flatMap(([target, problem]) =>
      problem === undefined ? [] : [`${path} imports ${target}: ${problem}`],
    );
  });
}

function problemOf(path: string, target: string): string | undefined {
  if (path.startsWith("scripts/")) return scriptProblem(target);
  if (path.startsWith("demo/")) return demoProblem(path, target);
  return path.startsWith("sandbox/") ? sandboxProblem(path, target) : importProblem(path, target);
}

function scriptProblem(target: string): string | undefined {
  if (programs.has(target)) return "that is a program, no file imports it";
  return /^(src|scripts)\//.test(target) ? undefined : "a script sees only src and scripts";
}

function sandboxProblem(path: string, target: string): string | undefined {
  if (programs.has(target)) return "that is a program, no file imports it";
  if (!target.startsWith("sandbox/")) return "the sandbox sees only itself";
  return directionProblem(
    layerOf(path, sandboxLayers),
    layerOf(target, sandboxLayers),
    sandboxLayers,
  );
}

function demoProblem(path: string, target: string): string | undefined {
  if (programs.has(target)) return "that is a program, no file imports it";
  if (target.startsWith("src/") || entryPoints.includes(target)) return undefined;
  if (target.startsWith("sandbox/")) return "the sandbox's package.json doesn't export that";
  if (!target.startsWith("demo/")) return "the demo sees only src, the sandbox, and itself";
  return directionProblem(layerOf(path, demoLayers), layerOf(target, demoLayers), demoLayers);
}

/** The sandbox is installed alone: what isn't in its package.json isn't there. */
function packageProblem(path: string, name: string): string | undefined {
  if (!path.startsWith("sandbox/")) return undefined;
  const { dependencies, devDependencies } = sandbox;
  const ofExamples = { ...devDependencies, [sandbox.name]: "" };
  const its = { ...dependencies, ...(path.startsWith("sandbox/examples/") ? ofExamples : {}) };
  return its[name] === undefined ? "sandbox/package.json doesn't name that" : undefined;
}

function importProblem(path: string, target: string): string | undefined {
  if (!target.startsWith("src/")) return "that is outside src";
  const from = programs.has(path) ? "main.ts" : layerOf(path, layers);
  const problem =
    featureProblem(path, target) ?? directionProblem(from, layerOf(target, layers), layers);
  return programs.has(target) ? "that is a program, no file imports it" : problem;
}

/** A feature can be taken away: only the list of all names it, which programs are handed by `main.ts`. */
function featureProblem(path: string, target: string): string | undefined {
  const [from, to] = [path, target].map((one) => /^src\/features\/([^/]+)\//.exec(one)?.[1]);
  if (path === "src/features/index.ts") return undefined;
  if (to !== undefined && from !== to)
    return from === undefined ? "only the list of features names one" : "no feature sees another";
  if (path.startsWith("src/cli/") && target.startsWith("src/features/"))
    return "what features say of gatehouse.yml is handed to programs";
  return undefined;
}

function directionProblem(
  from: string | undefined,
  to: string | undefined,
  order: readonly string[],
): string | undefined {
  if (from === undefined || to === undefined) return "a folder without a place in the import order";
  return order.indexOf(to) <= order.indexOf(from) ? undefined : `${to} comes after ${from}`;
}

/** Each circle, as the files in their order: `a → b → a`. An import of a type counts like any other. */
export function cycles(sources: Sources): readonly string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const walk = (path: string, above: readonly string[]): void => {
    const seen = above.indexOf(path);
    if (seen >= 0) found.push([...above.slice(seen), path].join(" → "));
    if (seen >= 0 || done.has(path)) return;
    for (const target of importsOf(path, sources.get(path) ?? "")) walk(target, [...above, path]);
    done.add(path);
  };
  for (const path of sources.keys()) walk(path, []);
  return found;
}
