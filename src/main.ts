import { runtimeProblem } from "./runtime.ts";

// Before anything else is loaded: an older Node would fail on the first file that needs a newer one
const problem = runtimeProblem(process.version);
if (problem !== undefined) {
  process.stderr.write(`${problem}\n`);
  process.exit(78);
}

const { runProcess } = await import("./process.ts");
await runProcess(process.argv.slice(2));
