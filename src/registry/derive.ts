import { readFile, writeFile } from "node:fs/promises";
import { commands } from "../commands/index.ts";
import { renderManifest } from "./manifest.ts";
import { withTable } from "./readme-table.ts";

/** Writes what follows from the commands; with `--check` it only names what is stale. */
const files = [
  { path: "manifest.yml", make: () => renderManifest(commands) },
  // Only its table is ours: without a README there is nothing to keep up to date
  {
    path: "README.md",
    make: (now: string | undefined) => (now === undefined ? undefined : withTable(now, commands)),
  },
];

const isCheck = process.argv.includes("--check");
for (const { path, make } of files) {
  const now = await readFile(path, "utf8").catch(() => undefined);
  const wanted = make(now);
  if (wanted === undefined || now === wanted) continue;
  if (isCheck) {
    process.stderr.write(`${path} is stale: run "npm run derive"\n`);
    process.exitCode = 1;
  } else {
    await writeFile(path, wanted);
    process.stdout.write(`${path} is written\n`);
  }
}
