import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { beforeAll, afterAll, describe, expect, it } from "vitest";
import { compileCache } from "../../support/compile-cache.ts";
import { beside, ranIn } from "./coverage.ts";

/** Turned down, never up. */
const most = { restart: { files: 61, functions: 660 }, show: { files: 35 } };

const run = promisify(execFile);

describe("the way through src", () => {
  let folder: string;
  let lives: Record<"restart" | "show", { way: ReturnType<typeof beside>; said: string }>;
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "gatehouse-way-"));
    const live = async (name: string, typed: string, answer: string) => {
      const into = path.join(folder, name);
      const { stdout } = await run(
        process.execPath,
        [path.join(import.meta.dirname, "process.ts"), typed, answer],
        { env: { ...process.env, ...compileCache, NODE_V8_COVERAGE: into, NODE_OPTIONS: "" } },
      );
      const [quiet, typing] = ranIn(into);
      if (!quiet || !typing) throw new Error("V8 wrote no coverage");
      return { way: beside(typing, quiet), said: stdout };
    };
    const [restart, show] = await Promise.all([
      live("restart", "/vm restart db-1", "Restarted"),
      live("show", "/vm show db-1", "db-1"),
    ]);
    lives = { restart, show };
  }, 120_000);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it("of a restart is short", () => {
    expect(lives.restart.said).toContain("Restarted");
    const { files, functions } = lives.restart.way;
    expect(files.length, files.join("\n")).toBeLessThanOrEqual(most.restart.files);
    expect(functions).toBeLessThanOrEqual(most.restart.functions);
  });

  it("of a show is shorter", () => {
    expect(lives.show.said).toContain("db-1");
    const { files } = lives.show.way;
    expect(files.length, files.join("\n")).toBeLessThanOrEqual(most.show.files);
  });
});
