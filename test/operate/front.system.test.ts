import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { runtimeProblem } from "../../src/operate/runtime.mjs";
import { root } from "../structure/sources.ts";

const pretend = `Object.defineProperty(process, "version", { value: "v20.1.0" })`;
/** This Node.js with an old number, and whatever old one this machine has: as programs and their first words. */
const oldOnes = [
  [process.execPath, "--import", `data:text/javascript,${encodeURIComponent(pretend)}`],
  ...["/usr/bin/node", "/usr/local/bin/node"].filter(isOld).map((program) => [program]),
];

function isOld(program: string): boolean {
  const version = existsSync(program) ? spawnSync(program, ["--version"]).stdout.toString() : "";
  return version !== "" && runtimeProblem(version.trim(), program) !== undefined;
}

const textOf = (name: string) => readFileSync(path.join(root, name), "utf8");

describe("an old Node.js", () => {
  it.each([
    ["gatehouse.mjs"],
    ["gatehouse.mjs", "--help"],
    ["run.mjs", "demo/demo.ts"],
    ["run.mjs", "test/run.ts"],
  ])("is told by the old one itself, in one sentence: %s %s", (...words) => {
    for (const [program = "", ...first] of oldOnes) {
      const { status, stdout, stderr } = spawnSync(program, [...first, ...words], { cwd: root });
      expect(stderr.toString()).toMatch(
        /^Gatehouse needs Node\.js 26 or newer, and this is v.*\n$/,
      );
      expect({ status, said: stdout.toString() }).toEqual({ status: 78, said: "" });
    }
  });

  it("is looked at by everything that starts: each script of package.json, and the image", () => {
    const { scripts } = JSON.parse(textOf("package.json")) as { scripts: Record<string, string> };
    const starts = Object.values(scripts).filter((script) => script.startsWith("node "));
    expect(starts.length).toBeGreaterThan(5);
    // An old one ends at an option that it doesn't know before it could say anything
    for (const script of starts) expect(script).toMatch(/^node (gatehouse|run)\.mjs\b/);
    const dockerfile = textOf("Dockerfile");
    expect(dockerfile).toMatch(/^COPY .*\bgatehouse\.mjs\b/m);
    expect(textOf(".dockerignore")).toContain("!gatehouse.mjs\n");
    expect(dockerfile).toMatch(/^ENTRYPOINT \["node", "--disable-sigusr1", .*"gatehouse\.mjs"\]/m);
  });
});

it("packages that aren't installed are told in one sentence", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "gatehouse-bare-"));
  try {
    for (const name of ["gatehouse.mjs", "package.json", "src"])
      cpSync(path.join(root, name), path.join(folder, name), { recursive: true });
    const { status, stderr } = spawnSync(process.execPath, ["gatehouse.mjs"], { cwd: folder });
    expect(stderr.toString()).toMatch(
      /^Gatehouse's packages aren't installed \(\S+ is missing\): run "npm ci" first\.\n$/,
    );
    expect(status).toBe(78);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
