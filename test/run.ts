// npm test runs the light tests: every rule and every story, on Redis alone. npm run test:system runs those that start browsers,
// programs, and other projects' servers (*.system.test.ts), and npm run test:all both. After "--", files replace the suite, and any
// option of vitest works. test/structure is in none of them: npm run check runs it. The last line is "N passed, N failed".
import { runTests } from "./support/run-tests.ts";

const suites: Readonly<Record<string, readonly string[]>> = {
  light: ["--exclude", "**/*.system.test.ts"],
  // They compute, so that more at once would only make each of them late.
  system: [".system.test.ts", "--maxWorkers=3"],
  all: [],
};
const [suite = "light", ...words] = process.argv.slice(2);
const isNamed = words.some((word) => word.startsWith("test/"));
const args = isNamed
  ? words
  : [...(suites[suite] ?? []), "--exclude", "test/structure/**", ...words];
const needsPrograms = isNamed ? words.some((word) => word.includes("system")) : suite !== "light";
process.exitCode = await runTests(args, { needsPrograms });
