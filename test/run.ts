// npm test: makes sure of the runtime, Redis and a browser, runs all tests (or those named on the command line, with
// any of vitest's options), and ends with one line: "N passed, N failed".
import { runtimeProblem } from "../src/start/runtime.ts";

const problem = runtimeProblem(process.version);
if (problem !== undefined) {
  process.stderr.write(`${problem}\n`);
  process.exit(1);
}
// imported late, so that an old Node reads the sentence above and not an error from inside a package
const { runTests } = await import("./support/run-tests.ts");
process.exitCode = await runTests(process.argv.slice(2));
