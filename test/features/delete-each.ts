import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { cp, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { readSources, root, runtimeImportsOf } from "../structure/sources.ts";

/**
 * Removes each feature, one at a time, from a copy of the project: its folder, its tests, and its
 * line in `features/index.ts`. The rest must pass the type checker and the tests of everything that
 * must work without features.
 *
 *     npm run check:features            all features
 *     npm run check:features -- alerts  some
 */

/**
 * The tests that must pass without any feature: those of requests, and of what people do in Slack.
 */
const remainingTests = ["test/core", "test/registry", "test/slack", "test/talk"];

/** True for folders that aren't copied: tests don't need them, or they are linked. */
const isLeftOut = (name: string) => name === "node_modules" || name === ".git";

const featuresIn = async (folder: string): Promise<readonly string[]> => {
  const entries = await readdir(path.join(folder, "src/features"), { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
};

async function copyWithout(feature: string) {
  const folder = await mkdtemp(path.join(tmpdir(), `gatehouse-without-${feature}-`));
  for (const name of await readdir(root))
    if (!isLeftOut(name))
      await cp(path.join(root, name), path.join(folder, name), { recursive: true });
  await symlink(path.join(root, "node_modules"), path.join(folder, "node_modules"));
  for (const part of ["src/features", "test/features"])
    await rm(path.join(folder, part, feature), { recursive: true, force: true });
  await unlist(feature, path.join(folder, "src/features/index.ts"));
  // The check covers only `src`: tests elsewhere, such as stories, use every feature.
  const only = { extends: "./tsconfig.json", include: ["src"] };
  await writeFile(path.join(folder, "tsconfig.src.json"), JSON.stringify(only));
  return {
    folder,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Removes the feature's import and its name from the list of features. */
async function unlist(feature: string, list: string): Promise<void> {
  const before = await readFile(list, "utf8");
  const importing = new RegExp(`^import \\{ (\\w+) \\} from "\\./${feature}/index\\.ts";\\n`, "m");
  const [, name] = importing.exec(before) ?? [];
  if (name === undefined) throw new Error(`${list} doesn't import ${feature}`);
  const rest = before.replace(importing, "");
  const [whole = "", inside = ""] =
    /features: readonly Feature\[\] = \[([^\]]*)\]/.exec(rest) ?? [];
  const left = inside.split(",").filter((one) => one.trim() !== name && one.trim() !== "");
  await writeFile(list, rest.replace(whole, whole.replace(`[${inside}]`, `[${left.join(",")}]`)));
}

/**
 * Finds the tests that load features, directly or not. For every other test nothing changes when a
 * feature goes, and the type checker has read the code that it tests.
 */
function testsWithFeatures(): readonly string[] {
  const sources = readSources(["src", "sandbox", "demo", "scripts", "test"]);
  function loaded(file: string, seen = new Set<string>()): ReadonlySet<string> {
    if (seen.has(file)) return seen;
    seen.add(file);
    for (const one of runtimeImportsOf(file, sources.get(file) ?? "")) loaded(one, seen);
    return seen;
  }
  const isRemaining = (file: string) =>
    file.endsWith(".test.ts") && remainingTests.some((folder) => file.startsWith(`${folder}/`));
  return [...sources.keys()].filter(
    (file) => isRemaining(file) && [...loaded(file)].some((one) => one.startsWith("src/features/")),
  );
}

/** Runs a program; resolves with its output and whether it succeeded. */
async function run(folder: string, words: readonly string[]) {
  const program = spawn(process.execPath, words, {
    cwd: folder,
    env: { ...process.env, FORCE_COLOR: "0" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = new Promise<number | null>((done) => program.on("close", done));
  const said = await Promise.all([text(program.stdout), text(program.stderr)]);
  return { isWell: (await ended) === 0, said: said.join("") };
}

/** Whether everything passes without this feature. Prints what fails. */
async function isWellWithout(feature: string, tests: readonly string[]): Promise<boolean> {
  await using copy = await copyWithout(feature);
  const modules = path.join(root, "node_modules");
  const vitest = path.join(modules, "vitest/vitest.mjs");
  const steps: readonly (readonly [what: string, words: readonly string[]])[] = [
    // Files that are derived from the commands must be derived again.
    ["derived files", ["run.mjs", "scripts/derive.ts"]],
    ["types", [path.join(modules, "typescript/bin/tsc"), "-p", "tsconfig.src.json"]],
    // A test that needs the feature fails again; one that was late on a busy machine doesn't.
    [`${tests.length} files of tests`, [vitest, "run", "--retry=1", "--reporter=dot", ...tests]],
  ];
  for (const [what, words] of steps) {
    const { isWell, said } = await run(copy.folder, words);
    if (isWell) continue;
    console.log(`✗ without ${feature}: ${what}\n${said.split("\n").slice(-80).join("\n")}`);
    return false;
  }
  console.log(`✓ without ${feature}: ${steps.map(([what]) => what).join(", ")}`);
  return true;
}

/** Two run at a time, because tests mostly wait. */
const atOnce = 2;

const asked = process.argv.slice(2);
const all = await featuresIn(root);
const unknown = asked.filter((feature) => !all.includes(feature));
if (unknown.length > 0) throw new Error(`no such feature: ${unknown.join(", ")}`);
const left = asked.length > 0 ? [...asked] : [...all];
const tests = testsWithFeatures();
const results = await Promise.all(
  Array.from({ length: atOnce }, async () => {
    let isWell = true;
    for (let feature = left.shift(); feature !== undefined; feature = left.shift())
      isWell = (await isWellWithout(feature, tests)) && isWell;
    return isWell;
  }),
);
process.exitCode = results.every(Boolean) ? 0 : 1;
