import path from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { compileCache } from "./test/support/compile-cache.ts";

/** Keep a processor busy: processes, browsers, thousands of cases. One after the other, between those that wait for sockets. */
const computing = [
  "faults/rows",
  "sandbox/page/in-a-browser",
  "operate/process.test",
  "fuzz/one-answer",
  "stories/browser",
  "operate/examples",
  "demo/weather",
  "operate/process-secrets",
];

/** Wait for minutes or seconds, so they begin first. */
const waiting = [
  "features/alerts/alerts-told",
  "features/alerts/alerts-storm",
  "stories/tour",
  "cli/doctor",
  "features/rollouts/rollout.",
  "stories/recap",
  "redis/failover",
  "stories/teams.",
  "stories/votes-across",
  "cli/propose",
  "stories/bad-days",
  "stories/unknown-outcome",
  "stories/refused-by-slack",
  "operate/status",
  "api/server",
  "features/reads/reads",
  "features/alerts/alertmanager",
];

const placeIn = (list: readonly string[], { moduleId }: TestSpecification) =>
  list.findIndex((part) => moduleId.includes(`/test/${part}`));

const inOrderOf = (list: readonly string[], files: readonly TestSpecification[]) =>
  files
    .filter((file) => placeIn(list, file) >= 0)
    .toSorted((a, b) => placeIn(list, a) - placeIn(list, b));

class Mixed extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const busy = inOrderOf(computing, files);
    const known = new Set([...busy, ...inOrderOf(waiting, files)]);
    // By their names alone, so that files of one folder, which are alike, don't all run at once
    const rest = files
      .filter((file) => !known.has(file))
      .toSorted((a, b) => path.basename(a.moduleId).localeCompare(path.basename(b.moduleId)));
    const apart = Math.ceil((rest.length * 0.8) / (busy.length || 1));
    return [
      ...inOrderOf(waiting, files),
      ...rest.flatMap((file, at) => [...(at % apart === 0 ? busy.splice(0, 1) : []), file]),
      ...busy,
    ];
  }
}

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    setupFiles: ["test/support/long-deadlines.ts"],
    globalSetup: ["test/support/shared-redis.ts"],
    // Processes that tests start inherit it, and load twice as fast.
    env: compileCache,
    // a test waits for facts (test/support/until.ts), and that ends before this
    testTimeout: 600_000,
    hookTimeout: 600_000,
    teardownTimeout: 5_000,
    pool: "forks",
    // Loading Bolt and its like anew for each file would take a third of the time; no file leaves anything behind
    isolate: false,
    // the tests wait for sockets and processes more than they compute
    maxWorkers: 7,
    // as many of one file at once: they share a processor, and each has its own seconds to wait for
    maxConcurrency: 3,
    sequence: { sequencer: Mixed },
    // an "only" left behind must not let the rest pass unseen
    allowOnly: false,
  },
});
