import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { compileCache } from "../support/compile-cache.ts";
import { root } from "./sources.ts";

function npmTest(...args: readonly string[]): {
  code: number | null;
  lastLine: string | undefined;
} {
  const env = Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST"));
  const { status, stdout } = spawnSync(process.execPath, ["test/run.ts", "light", ...args], {
    cwd: root,
    env: { ...Object.fromEntries(env), ...compileCache },
    encoding: "utf8",
  });
  return { code: status, lastLine: stdout.trimEnd().split("\n").at(-1) };
}

describe("npm test", () => {
  // The first run on a machine installs what is missing
  it("ends with one line that counts", () => {
    expect(npmTest("test/operate/runtime.test.ts")).toEqual({
      code: 0,
      lastLine: "7 passed, 0 failed",
    });
  });

  it("fails when nothing ran", () => {
    expect(npmTest("test/operate/runtime.test.ts", "-t", "no test is called so")).toEqual({
      code: 1,
      lastLine: "0 passed, 0 failed, 7 skipped",
    });
    expect(npmTest("test/no-such-file")).toEqual({ code: 1, lastLine: "0 passed, 0 failed" });
  });
});
