import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { cp, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { readSources, root, runtimeImportsOf } from "../structure/sources.ts";

/**
 * Removes features from a copy of the project: their folders, their tests, the examples of their messages, and their lines in `features/index.ts`. Without any
 * feature, the rest must pass the type checker and the tests of everything that must work then; without each one of them, the type
 * checker.
 *
 *     npm run check:features            without any, and without each the type checker alone
 *     npm run check:features -- --each  without each the tests, too: before a release
 *     npm run check:features -- alerts  the same without some, one by one
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

async function startCopy() {
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-without-"));
  for (const name of await readdir(root))
    if (!isLeftOut(name))
      await cp(path.join(root, name), path.join(folder, name), { recursive: true });
  await symlink(path.join(root, "node_modules"), path.join(folder, "node_modules"));
  // The check covers only `src`: tests elsewhere, such as stories, use every feature. It goes on from the check before, which takes a
  // fifth of the time.
  const only = {
    extends: "./tsconfig.json",
    include: ["src"],
    compilerOptions: { incremental: true, tsBuildInfoFile: "src.tsbuildinfo", skipLibCheck: true },
  };
  await writeFile(path.join(folder, "tsconfig.src.json"), JSON.stringify(only));
  const list = path.join(folder, "src/features/index.ts");
  return {
    folder,
    async remove(features: readonly string[]): Promise<void> {
      for (const feature of features) {
        for (const part of ["src/features", "test/features"])
          await rm(path.join(folder, part, feature), { recursive: true, force: true });
        await rm(path.join(folder, `demo/cards/examples/${feature}.ts`), { force: true });
        await unlist(feature, list);
      }
    },
    async restore(features: readonly string[]): Promise<void> {
      for (const name of features.map((feature) => `src/features/${feature}`))
        await cp(path.join(root, name), path.join(folder, name), { recursive: true });
      await cp(path.join(root, "src/features/index.ts"), list);
    },
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
    /(?<!\.system)\.test\.ts$/.test(file) &&
    remainingTests.some((folder) => file.startsWith(`${folder}/`));
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

type Step = readonly [what: string, words: readonly string[]];
const modules = path.join(root, "node_modules");
// Files that are derived from the commands must be derived again.
const derived: Step = ["derived files", ["run.mjs", "scripts/derive.ts"]];
const types: Step = [
  "types",
  [path.join(modules, "typescript/bin/tsc"), "-p", "tsconfig.src.json"],
];
const testing = (): Step => {
  const files = testsWithFeatures();
  const vitest = path.join(modules, "vitest/vitest.mjs");
  return [`${files.length} files of tests`, [vitest, "run", "--reporter=dot", ...files]];
};

/** Whether all steps pass in this folder. Prints what fails. */
async function pass(folder: string, without: string, steps: readonly Step[]): Promise<boolean> {
  for (const [what, words] of steps) {
    const { isWell, said } = await run(folder, words);
    if (isWell) continue;
    console.log(`✗ without ${without}: ${what}\n${said.split("\n").slice(-80).join("\n")}`);
    return false;
  }
  console.log(`✓ without ${without}: ${steps.map(([what]) => what).join(", ")}`);
  return true;
}

/** Whether the rest passes these steps without each of these, one at a time. */
async function passWithoutEach(
  features: readonly string[],
  steps: readonly Step[],
): Promise<boolean> {
  await using copy = await startCopy();
  let isWell = true;
  for (const feature of features) {
    await copy.remove([feature]);
    isWell = (await pass(copy.folder, feature, steps)) && isWell;
    await copy.restore([feature]);
  }
  return isWell;
}

async function passWithoutAny(features: readonly string[]): Promise<boolean> {
  await using copy = await startCopy();
  await copy.remove(features);
  return await pass(copy.folder, "any feature", [types, derived, testing()]);
}

const words = process.argv.slice(2);
const asked = words.filter((word) => word !== "--each");
const all = await featuresIn(root);
const unknown = asked.filter((feature) => !all.includes(feature));
if (unknown.length > 0) throw new Error(`no such feature: ${unknown.join(", ")}`);
const results =
  words.length > 0
    ? [await passWithoutEach(asked.length > 0 ? asked : all, [derived, types, testing()])]
    : [await passWithoutEach(all, [types]), await passWithoutAny(all)];
process.exitCode = results.every(Boolean) ? 0 : 1;
