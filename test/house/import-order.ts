import { importsOf, type Sources } from "./sources.ts";

/**
 * The rooms of `src` from left to right: a file imports from its own room and from rooms to its left. A room inside a
 * room has a place of its own; files beside it stand where the outer name stands. Whatever isn't in a listed room is
 * a mistake.
 */
const rooms = [
  "errors.ts",
  "deadline.ts",
  "regular-file.ts",
  "text",
  "verifier",
  "config",
  "log",
  "redis",
  "messages",
  "compute",
  "charts",
  "inventory",
  "attestation",
  "registry",
  "policy",
  "approvals",
  "audit",
  "requests/journal",
  "requests/submit",
  "requests/perform",
  "requests/render",
  "requests",
  "digests",
  "rollouts",
  "outages",
  "jobs",
  "commands",
  "slack/payload.ts",
  "slack/web.ts",
  "slack/shared-channels.ts",
  "slack/error-reply.ts",
  "slack/people",
  "slack/deliver",
  "door",
  "slack/receive",
  "slack/conversation",
  "slack",
  "door/serve",
  "start",
  "main.ts",
];

/**
 * The sandbox is a house of its own, with rooms in the same way. What the browser loads stands left of the servers, so
 * that it can't import them: from Slack it sees what a person sees, what they can do, and how fields are read.
 */
const sandboxRooms = [
  "random.ts",
  "listen.ts",
  "programs.ts",
  "agent.ts",
  "find-program.ts",
  "ensure-redis.ts",
  "killable.ts",
  "evidence",
  "compute",
  "slack/seen.ts",
  "slack/actions.ts",
  "slack/fields.ts",
  "page/around.ts",
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
  "world.ts",
  "demo-world.ts",
  "tour",
  "demo-guide.ts",
  "demo.ts",
  "demo-worker.ts",
];

/** Programs of their own: they see what `main.ts` sees, and no file imports them. */
const programs = new Set([
  "src/main.ts",
  "scripts/derive.ts",
  "sandbox/compute/main.ts",
  "sandbox/slack/main.ts",
  "sandbox/tour/main.ts",
  "sandbox/demo.ts",
  "sandbox/demo-worker.ts",
]);

/** The longest room whose name begins the path. */
function roomOf(path: string, house: readonly string[]): string | undefined {
  const inside = path.replace(/^(src|sandbox)\//, "");
  return house
    .filter((room) => inside === room || inside.startsWith(`${room}/`))
    .toSorted((a, b) => b.length - a.length)[0];
}

/**
 * A sentence for each import that points to the right, to a program, out of `src`, or from a place that is no room.
 * The sandbox may import all of `src`, never the tests; so may `scripts`, which nothing else imports.
 */
export function orderProblems(sources: Sources): readonly string[] {
  return [...sources].flatMap(([path, text]) =>
    importsOf(path, text).flatMap((target) => {
      const problem = problemOf(path, target);
      return problem === undefined ? [] : [`${path} imports ${target}: ${problem}`];
    }),
  );
}

function problemOf(path: string, target: string): string | undefined {
  if (path.startsWith("scripts/")) return scriptProblem(target);
  return path.startsWith("sandbox/") ? sandboxProblem(path, target) : importProblem(path, target);
}

function scriptProblem(target: string): string | undefined {
  if (programs.has(target)) return "that is a program, no file imports it";
  return /^(src|scripts)\//.test(target) ? undefined : "a script sees only src and scripts";
}

function sandboxProblem(path: string, target: string): string | undefined {
  if (programs.has(target)) return "that is a program, no file imports it";
  if (target.startsWith("src/")) return undefined;
  if (!target.startsWith("sandbox/")) return "the sandbox sees only itself and src";
  return directionProblem(roomOf(path, sandboxRooms), roomOf(target, sandboxRooms), sandboxRooms);
}

function importProblem(path: string, target: string): string | undefined {
  if (!target.startsWith("src/")) return "that is outside src";
  const from = programs.has(path) ? "main.ts" : roomOf(path, rooms);
  const problem = directionProblem(from, roomOf(target, rooms), rooms);
  return programs.has(target) ? "that is a program, no file imports it" : problem;
}

function directionProblem(
  from: string | undefined,
  to: string | undefined,
  house: readonly string[],
): string | undefined {
  if (from === undefined || to === undefined) return "a folder without a place in the import order";
  return house.indexOf(to) <= house.indexOf(from)
    ? undefined
    : `${to} stands to the right of ${from}`;
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
