// npm test: makes sure of Redis and a browser, runs all tests (or those named on the command line, with any of vitest's
// options), and ends with one line: "N passed, N failed".
import { runTests } from "./support/run-tests.ts";

process.exitCode = await runTests(process.argv.slice(2));
