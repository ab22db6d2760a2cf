// node test/faults/mutants.ts: takes one safeguard away at a time, in a copy, and shows that the suite notices.
//   --only "the claim"   those alone whose name has these words
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { root } from "./stage/child.ts";
import { applyPatch, patchProblem } from "./stage/patch.ts";
import { type Mutation, mutations } from "./suite/mutations.ts";

const { values } = parseArgs({ options: { only: { type: "string", default: "" } } });
const wanted = mutations.filter(({ name }) => name.includes(values.only));
const problems = await Promise.all(
  mutations.map(async (one) => {
    const text = await readFile(path.join(root, one.file), "utf8").catch(() => undefined);
    const problem = patchProblem(one, text);
    return problem === undefined ? [] : [`${one.name}: ${problem}`];
  }),
);
if (problems.flat().length > 0 || wanted.length === 0) {
  process.stderr.write(`${[...problems.flat(), `${wanted.length} mutants`].join("\n")}\n`);
  process.exit(1);
}

let unnoticed = 0;
for (const mutation of wanted) {
  const { isNoticed, lines } = await tryOut(mutation);
  if (!isNoticed) unnoticed += 1;
  process.stdout.write(
    `${isNoticed ? "noticed" : "NOT NOTICED"}: ${mutation.name} (${mutation.rows})\n`,
  );
  for (const line of lines) process.stdout.write(`    ${line}\n`);
}
process.exit(unnoticed > 0 ? 1 : 0);

/** Noticed: the rows hold in the copy as it is, and one of them is broken once the safeguard is gone. */
async function tryOut(
  mutation: Mutation,
): Promise<{ isNoticed: boolean; lines: readonly string[] }> {
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-mutant-"));
  try {
    for (const part of ["src", "sandbox", "demo", "test", "package.json", "manifest.yml"])
      await cp(path.join(root, part), path.join(folder, part), { recursive: true });
    await symlink(path.join(root, "node_modules"), path.join(folder, "node_modules"));
    const before = await runRows(folder, mutation.rows);
    const rows = mutation.rows.split(",");
    if (!rows.every((id) => before.some((line) => line.startsWith(`${id} holds`))))
      return { isNoticed: false, lines: ["not all rows hold with it", ...before] };
    await applyPatch(folder, mutation);
    const broken = (await runRows(folder, mutation.rows)).filter((line) =>
      line.includes(" BROKEN"),
    );
    return { isNoticed: broken.length > 0, lines: broken };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The line that the suite says about each row. */
async function runRows(folder: string, rows: string): Promise<string[]> {
  const child = spawn(process.execPath, ["test/faults/run.ts", "--only", rows, "--times", "6"], {
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  await once(child, "close");
  return output.split("\n").filter((line) => /^\w+ (holds|BROKEN|not run)/.test(line));
}
