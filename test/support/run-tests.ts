import { messageOf } from "../../src/errors.ts";
import { lastReleaseProblem } from "./last-release.ts";
import { installPrograms } from "./programs.ts";
import { engineProblem } from "./shipped.ts";
import { ensureRedis } from "../../sandbox/ensure-redis.ts";
import { parseCLI, startVitest, type TestModule } from "vitest/node";

/**
 * Runs vitest with these command-line arguments and prints the closing line. Resolves to the exit code. `needsPrograms`: installs what
 * system tests need beside Redis, or says what is missing.
 */
export async function runTests(
  args: readonly string[],
  { needsPrograms }: { needsPrograms: boolean },
): Promise<number> {
  try {
    await ensureRedis();
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`);
    return 1;
  }
  if (needsPrograms)
    for (const skipped of [await installPrograms(), lastReleaseProblem(), await engineProblem()])
      if (skipped !== undefined) process.stderr.write(`${skipped}\n`);
  const { filter, options } = parseCLI(["vitest", "run", ...args]);
  const vitest = await startVitest(filter, { ...options, watch: false });
  const stray = vitest.state.getUnhandledErrors().length;
  const tally = countTests(vitest.state.getTestModules(), stray);
  const allWell = tally.failed === 0 && tally.passed > 0;
  await vitest.close();
  // a run that vitest calls failed for a reason of its own (no files, a threshold) isn't a pass either
  const code = allWell && (process.exitCode ?? 0) === 0 ? 0 : 1;
  process.stdout.write(`${closingLine(tally)}\n`);
  return code;
}

export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

/** A file that can't be loaded and an error outside of any test count as one failure each. */
function countTests(modules: readonly TestModule[], stray: number): Tally {
  const tally: Tally = { passed: 0, failed: stray, skipped: 0 };
  for (const module of modules) {
    let failedHere = 0;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === "passed") tally.passed++;
      else if (state === "failed") failedHere++;
      else tally.skipped++;
    }
    tally.failed += failedHere === 0 && module.state() === "failed" ? 1 : failedHere;
  }
  return tally;
}

export function closingLine({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}
