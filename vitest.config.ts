import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * What takes longest begins first, or one worker would be busy with it when the others have nothing left; of these, what waits
 * beside what computes.
 */
const slow = [
  "test/stories/tour",
  "test/faults/campaign",
  "test/stories/recap",
  "test/start/process.test",
  "test/redis/failover",
  "test/faults/rows",
  "test/sandbox/page/in-a-browser",
  "test/upgrade/",
  "test/fuzz/one-answer",
  "test/sandbox/page/",
  "test/start/",
  "test/stories/",
];

function rank({ moduleId }: TestSpecification): number {
  const at = slow.findIndex((part) => moduleId.includes(part));
  return at < 0 ? slow.length : at;
}

class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line no-array-sort -- a sequencer's, not an array's
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/shared-redis.ts"],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    teardownTimeout: 5_000,
    pool: "forks",
    // Loading Bolt and its like anew for each file would take a third of the time; no file leaves anything behind
    isolate: false,
    // the tests wait for sockets and processes more than they compute
    maxWorkers: 3,
    sequence: { sequencer: SlowFirst },
    // an "only" left behind must not let the rest pass unseen
    allowOnly: false,
  },
});
