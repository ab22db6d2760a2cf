// npm test: makes sure of Redis and a browser, runs all tests but those of test/structure, which npm run check runs, and of
// test/releases, which npm run check:releases runs (or those named on the command line, with any of vitest's options), and ends with one
// line: "N passed, N failed".
import { runTests } from "./support/run-tests.ts";

const named = process.argv.slice(2);
process.exitCode = await runTests(
  named.length > 0 ? named : ["--exclude", "test/structure/**", "--exclude", "test/releases/**"],
);
