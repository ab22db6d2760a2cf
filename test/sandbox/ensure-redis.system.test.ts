import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { installPrograms, programOf } from "../support/programs.ts";
import { startRedis } from "../../sandbox/ensure-redis.ts";
import { findProgram } from "../../sandbox/find-program.ts";
import { until } from "../support/until.ts";

const redisModule = new URL("../../sandbox/ensure-redis.ts", import.meta.url).href;

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const ended = (pid: number) => until(() => isRunning(pid)).toBe(false);

describe("the sandbox's own Redis", () => {
  it("answers as soon as it is there, and leaves nothing behind when it is stopped", async () => {
    const server = await startRedis();
    const cli = await promisify(execFile)(process.execPath, [
      "-e",
      `const s = require("node:net").connect(${server.port}, "127.0.0.1"); s.on("data", (d) => { console.log(String(d)); s.end() }); s.write("CONFIG GET appendonly\\r\\n")`,
    ]);
    expect(cli.stdout).toContain("yes");
    await server.stop();
    expect(isRunning(server.pid)).toBe(false);
    expect(existsSync(server.dir)).toBe(false);
    await server.stop(); // twice is harmless
  });

  it("ends when the process that started it is killed", async () => {
    const script = `
      const { startRedis } = await import(${JSON.stringify(redisModule)});
      console.log((await startRedis()).pid);
      setInterval(() => {}, 1000);`;
    const parent = spawn(process.execPath, ["--input-type=module", "-e", script]);
    const [line] = await once(parent.stdout, "data");
    const pid = Number(String(line));
    expect(isRunning(pid)).toBe(true);
    parent.kill("SIGKILL");
    await ended(pid);
  });

  it("doesn't keep the process alive that started it", async () => {
    const script = `const { startRedis } = await import(${JSON.stringify(redisModule)}); console.log((await startRedis()).pid)`;
    const { stdout } = await promisify(execFile)(process.execPath, [
      "--input-type=module",
      "-e",
      script,
    ]);
    await ended(Number(stdout));
  });

  it("says what Redis said when it can't start", async () => {
    await using first = await startRedis();
    await expect(startRedis({ port: first.port })).rejects.toThrow(
      `didn't start on port ${first.port}`,
    );
    await expect(startRedis({ port: 0, args: ["--no-such-setting", "1"] })).rejects.toThrow(
      /didn't start/,
    );
  });
});

describe("a program on the PATH", () => {
  it("is the first one that can be run", () => {
    const folder = mkdtempSync(join(tmpdir(), "gatehouse-path-"));
    const write = (name: string, mode: number) => {
      writeFileSync(join(folder, name), "#!/bin/sh\n");
      chmodSync(join(folder, name), mode);
    };
    write("redis-server", 0o644);
    write("valkey-server", 0o755);
    const names = ["redis-server", "valkey-server"];
    // root may run nothing that has no x bit at all
    expect(findProgram(names, `/nowhere::${folder}`)).toBe(join(folder, "valkey-server"));
    expect(findProgram(names, "")).toBeUndefined();
    rmSync(folder, { recursive: true });
  });
});

describe("the programs that tests run", () => {
  it("are there, or named with the way to get them", async () => {
    const missing = await installPrograms({ install: false });
    expect(missing?.includes("chromium") ?? false).toBe(programOf("chromium") === undefined);
    if (missing !== undefined) expect(missing).toMatch(/apt-get install \w/);
  });
});
