import { runtimeProblem } from "./start/runtime.ts";
import { catchSignals } from "./start/signals.ts";

const signals = catchSignals();

// Before anything else is loaded: an older Node would fail on the first file that needs a newer one
const problem = runtimeProblem(process.version);
if (problem !== undefined) {
  process.stderr.write(`${problem}\n`);
  process.exit(78);
}

const { runProcess } = await import("./start/process.ts");
await runProcess(process.argv.slice(2), signals);
