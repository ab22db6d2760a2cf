import { defineConfig, mergeConfig } from "vitest/config";
import base from "./vitest.config.ts";
export default mergeConfig(base, defineConfig({ test: { maxWorkers: 2, execArgv: "--no-maglev".split(" ").filter(Boolean), experimental: { viteModuleRunner: false, nodeLoader: false } } }));
