import { spawnSync } from "node:child_process";
import { cp, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { root } from "../structure/sources.ts";

/**
 * Takes each feature away, one at a time, in a copy of the project: its folder, its tests, and its line in `features/index.ts`. What is
 * left must pass the type checker, and the tests of what no feature may be needed for.
 *
 *     npm run check:features            all features
 *     npm run check:features -- alerts  some
 */

/** Tests of the life of a request, and of what people do in Slack. */
const remainingTests = [
  "test/requests",
  "test/approvals",
  "test/policy",
  "test/registry",
  "test/slack",
];

/** Of no use to tests, or linked. */
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
  // Tests that go with the feature aren't all in its folder: stories use everything
  const only = { extends: "./tsconfig.json", include: ["src"] };
  await writeFile(path.join(folder, "tsconfig.src.json"), JSON.stringify(only));
  return {
    folder,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Removes its import, and its name from the list. */
async function unlist(feature: string, list: string): Promise<void> {
  const text = await readFile(list, "utf8");
  const importing = new RegExp(`^import \\{ (\\w+) \\} from "\\./${feature}/index\\.ts";\\n`, "m");
  const [, name] = importing.exec(text) ?? [];
  if (name === undefined) throw new Error(`${list} doesn't import ${feature}`);
  const rest = text.replace(importing, "");
  const [whole = "", inside = ""] =
    /features: readonly Feature\[\] = \[([^\]]*)\]/.exec(rest) ?? [];
  const left = inside.split(",").filter((one) => one.trim() !== name && one.trim() !== "");
  await writeFile(list, rest.replace(whole, whole.replace(`[${inside}]`, `[${left.join(",")}]`)));
}

function passes(folder: string, what: string, words: readonly string[]): boolean {
  const { status, stdout, stderr } = spawnSync(process.execPath, words, {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, FORCE_COLOR: "0" },
  });
  console.log(`  ${status === 0 ? "✓" : "✗"} ${what}`);
  if (status !== 0) console.log(`${stdout}${stderr}`.split("\n").slice(-80).join("\n"));
  return status === 0;
}

const asked = process.argv.slice(2);
const all = await featuresIn(root);
const unknown = asked.filter((feature) => !all.includes(feature));
if (unknown.length > 0) throw new Error(`no such feature: ${unknown.join(", ")}`);
let isWell = true;
for (const feature of asked.length > 0 ? asked : all) {
  console.log(`without ${feature}`);
  await using copy = await copyWithout(feature);
  const modules = path.join(root, "node_modules");
  // What is derived from the commands follows, too
  const isDerived = passes(copy.folder, "derived files", ["run.mjs", "scripts/derive.ts"]);
  const isTyped =
    isDerived &&
    passes(copy.folder, "types", [
      path.join(modules, "typescript/bin/tsc"),
      "-p",
      "tsconfig.src.json",
    ]);
  const isTested =
    isTyped &&
    passes(copy.folder, `tests: ${remainingTests.join(" ")}`, [
      path.join(modules, "vitest/vitest.mjs"),
      "run",
      "--reporter=dot",
      ...remainingTests,
    ]);
  isWell &&= isTyped && isTested;
}
process.exitCode = isWell ? 0 : 1;
