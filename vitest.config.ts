import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { compileCache } from "./test/support/compile-cache.ts";

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
    // Most of a story waits for sockets and clocks, so that three keep a processor busy
    maxWorkers: 3 * availableParallelism(),
    // Node.js loads the TypeScript itself, as it does in production. Vite's code looks up each import whenever it is used
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // Short-lived objects of the many sandboxes die before anything copies them (MB)
    execArgv: ["--max-semi-space-size=32"],
    // as many of one file at once: they share a processor, and each has its own seconds to wait for
    maxConcurrency: 3,
    // an "only" left behind must not let the rest pass unseen
    allowOnly: false,
  },
});
