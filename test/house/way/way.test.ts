import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { beforeAll, afterAll, describe, expect, it } from "vitest";
import { compileCache } from "../../support/compile-cache.ts";
import { beside, ranIn } from "./coverage.ts";

/** Turned down, never up. */
const most = { restart: { files: 122, functions: 700 }, show: { files: 66 } };

const run = promisify(execFile);

describe("the way through src", () => {
  let folder: string;
  let lives: Record<"idle" | "restart" | "show", { ran: ReturnType<typeof ranIn>; said: string }>;
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "gatehouse-way-"));
    const live = async (name: string, typed: string) => {
      const into = path.join(folder, name);
      const { stdout } = await run(
        process.execPath,
        [path.join(import.meta.dirname, "process.ts"), typed],
        { env: { ...process.env, ...compileCache, NODE_V8_COVERAGE: into, NODE_OPTIONS: "" } },
      );
      return { ran: ranIn(into), said: stdout };
    };
    const [idle, restart, show] = await Promise.all([
      live("idle", ""),
      live("restart", "/vm restart db-1"),
      live("show", "/vm show db-1"),
    ]);
    lives = { idle, restart, show };
  }, 120_000);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it("of a restart is short", () => {
    expect(lives.restart.said).toContain("Restarted");
    const { files, functions } = beside(lives.restart.ran, lives.idle.ran);
    expect(files.length, files.join("\n")).toBeLessThanOrEqual(most.restart.files);
    expect(functions).toBeLessThanOrEqual(most.restart.functions);
  });

  it("of a show is shorter", () => {
    expect(lives.show.said).toContain("db-1");
    const { files } = beside(lives.show.ran, lives.idle.ran);
    expect(files.length, files.join("\n")).toBeLessThanOrEqual(most.show.files);
  });
});
