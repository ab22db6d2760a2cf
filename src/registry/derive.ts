import { readFile, writeFile } from "node:fs/promises";
import { commands } from "../commands/index.ts";
import { renderManifest } from "./manifest.ts";
import { withTable } from "./readme-table.ts";

/** Writes what follows from the commands; with `--check` it only names what is stale. */
const files = [
  { path: "manifest.yml", make: () => renderManifest(commands) },
  { path: "README.md", make: (now: string) => withTable(now, commands) },
];

const isCheck = process.argv.includes("--check");
let isStale = false;
for (const { path, make } of files) {
  const now = await readFile(path, "utf8").catch(() => "");
  const wanted = make(now);
  if (now === wanted) continue;
  isStale = true;
  if (isCheck) process.stderr.write(`${path} is stale: run "npm run derive"\n`);
  else await writeFile(path, wanted);
}
if (isCheck && isStale) process.exitCode = 1;
