// node test/faults/mutants.ts: takes one safeguard away at a time, in a copy, and shows that the suite notices.
import { spawn } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { root } from "./child.ts";

interface Mutant {
  name: string;
  file: string;
  /** What stands there, and what stands there instead. */
  change: readonly [string, string];
  /** Rows that must notice. */
  rows: string;
}

const mutants: Mutant[] = [
  {
    name: "the ledger is not compared with the journal",
    file: "src/requests/check-ledger.ts",
    change: ["if (missing.length > 0) {", "if (missing.length > 1e9) {"],
    rows: "R3",
  },
  {
    name: "the ledger does not stand in the way of a send",
    file: "src/requests/ledger.ts",
    change: ["if (ids.has(idOf(entry))) return false;", ""],
    rows: "M5",
  },
  {
    name: "the claim compares no revision",
    file: "src/requests/scripts.ts",
    change: ["if revision ~= ARGV[2] then return {'changed'} end", ""],
    rows: "M1",
  },
  {
    name: "the claim takes no lock",
    file: "src/requests/scripts.ts",
    change: ["if holder and holder ~= ARGV[1] then return {'locked', holder} end", ""],
    rows: "M2",
  },
  {
    name: "the claim doesn't look for a freeze",
    file: "src/requests/scripts.ts",
    change: ["if freeze then return {'frozen', freeze} end", ""],
    rows: "M3",
  },
  {
    name: "the gate doesn't count the votes again",
    file: "src/requests/gate.ts",
    change: ["if (unapproved) return unapproved;", ""],
    rows: "X2,X14",
  },
  {
    name: "the gate doesn't compare the target with what was seen",
    file: "src/requests/gate.ts",
    change: ["if (changed) return", 'if (changed === "never") return'],
    rows: "A19,I4",
  },
  {
    name: "a lost post is not looked up",
    file: "src/slack/post-once.ts",
    change: [
      "const found = await lookUp(subject, what, place);",
      'const found = await lookUp({ ...subject, id: "nobody" }, what, place);',
    ],
    rows: "S8",
  },
  {
    name: "no time of quiet",
    file: "src/requests/judge.ts",
    change: ["const quietAt = leftBy + timing.quiesceMs;", "const quietAt = leftBy;"],
    rows: "A6,M4",
  },
  {
    name: "a call begins however late it is",
    file: "src/requests/send.ts",
    change: ["performance.now() - claimedAt <= longestMs", "performance.now() >= 0"],
    rows: "P13b",
  },
  {
    name: "the first call of what was sent twice is forgotten",
    file: "src/requests/resend.ts",
    change: ["await by.store.expectLate(id);", ""],
    rows: "A7b",
  },
];

const { values } = parseArgs({ options: { only: { type: "string", default: "" } } });
let unnoticed = 0;
for (const mutant of mutants.filter(({ name }) => name.includes(values.only))) {
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-mutant-"));
  try {
    for (const part of ["src", "test", "package.json"])
      await cp(path.join(root, part), path.join(folder, part), { recursive: true });
    await symlink(path.join(root, "node_modules"), path.join(folder, "node_modules"));
    const file = path.join(folder, mutant.file);
    const source = await readFile(file, "utf8");
    if (!source.includes(mutant.change[0]))
      throw new Error(`${mutant.name}: ${mutant.file} has changed, look again`);
    await writeFile(file, source.replace(...mutant.change));
    const { code, output } = await runRows(folder, mutant.rows);
    const isNoticed = code !== 0;
    if (!isNoticed) unnoticed += 1;
    process.stdout.write(
      `${isNoticed ? "noticed" : "NOT NOTICED"}: ${mutant.name} (${mutant.rows})\n`,
    );
    for (const line of output
      .split("\n")
      .filter((text) => /BROKEN/.test(text) && !text.startsWith("|")))
      process.stdout.write(`    ${line}\n`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
process.exit(unnoticed > 0 ? 1 : 0);

async function runRows(folder: string, rows: string): Promise<{ code: number; output: string }> {
  const child = spawn(process.execPath, ["test/faults/run.ts", "--only", rows, "--times", "6"], {
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const { promise, resolve } = Promise.withResolvers<number>();
  child.on("close", (code) => resolve(code ?? 1));
  return { code: await promise, output };
}
