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

/** What a timer happened to run meanwhile is no part of a way: the shortest of three lives counts. */
const life = { retry: 2, timeout: 120_000 };

describe("the way through src", () => {
  let folder: string;
  let lives = 0;
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "gatehouse-way-"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  async function live(typed: string, answer: string) {
    const into = path.join(folder, String((lives += 1)));
    const { stdout } = await run(
      process.execPath,
      [path.join(import.meta.dirname, "process.ts"), typed, answer],
      { env: { ...process.env, ...compileCache, NODE_V8_COVERAGE: into, NODE_OPTIONS: "" } },
    );
    const [quiet, typing] = ranIn(into);
    if (!quiet || !typing) throw new Error("V8 wrote no coverage");
    return { ...beside(typing, quiet), said: stdout };
  }

  it("of a restart is short", life, async () => {
    const { files, functions, said } = await live("/vm restart db-1", "Restarted");
    expect(said).toContain("Restarted");
    expect(files.length, files.join("\n")).toBeLessThanOrEqual(most.restart.files);
    expect(functions).toBeLessThanOrEqual(most.restart.functions);
  });

  it("of a show is shorter", life, async () => {
    const { files, said } = await live("/vm show db-1", "db-1");
    expect(said).toContain("db-1");
    expect(files.length, files.join("\n")).toBeLessThanOrEqual(most.show.files);
  });
});
