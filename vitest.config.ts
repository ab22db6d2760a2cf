import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/shared-redis.ts"],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    teardownTimeout: 5_000,
    pool: "forks",
    // the tests wait for sockets and processes more than they compute
    maxWorkers: 3,
    // an "only" left behind must not let the rest pass unseen
    allowOnly: false,
  },
});
