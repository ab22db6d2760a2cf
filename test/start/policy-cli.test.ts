import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runPolicy } from "../../src/start/policy-cli.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gatehouse-policy-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs it as typed; `file` is what GATEHOUSE_CONFIG names. */
function typed(words: readonly string[], file = "gatehouse.example.yml") {
  let said = "";
  const code = runPolicy(words, { file, write: (text) => void (said += text) });
  return { code, said };
}

function written(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const onCall = ["--as", "U0OLIVIA", "--groups", "S01ONCALL"];

describe("policy check", () => {
  it("says what a file without problems holds", () => {
    expect(typed(["check"])).toMatchObject({
      code: 0,
      said: expect.stringContaining("has no problems: 1 approval rule"),
    });
  });

  it("names every problem with its line", () => {
    const bad = written("bad.yml", "acess: {}\nprotect: 7\n");
    const { code, said } = typed(["check", bad]);
    expect(code).toBe(1);
    expect(said).toContain(`${bad} line 1: acess isn't known; did you mean access?`);
    expect(said).toContain(`${bad} line 2: protect must be a list`);
  });

  it("says so when there is no file", () => {
    expect(typed(["check", join(folder, "none.yml")])).toMatchObject({
      code: 1,
      said: expect.stringContaining("can't be read"),
    });
  });
});

describe("policy explain", () => {
  it.each([
    [["vm.restart", "payments/web-2"], 0, /^allowed, without approval: no entry of approvals/],
    [["vm.restore", "payments/db-1"], 0, /^allowed, with 1 approval: .*Approvers: S02LEADS/],
    [["vm.restore", "prod-pay/db-1"], 0, /^allowed, with 2 approvals: .*yml line 12/],
    [["vm.stop", "vault-1"], 1, /^refused: vault-1 is protected.*yml line 17/],
    [["gatehouse.thaw"], 1, /^refused: .*access.administer.*yml line 8/],
    [["vm.stp", "web-1"], 1, /^There is no command vm.stp; did you mean vm.stop\?/],
  ])("%s", (words, code, said) => {
    const answer = typed(["explain", ...onCall, ...words]);
    expect(answer.said).toMatch(said);
    expect(answer.code).toBe(code);
  });

  it("decides by the channel too", () => {
    const file = written("here.yml", 'access: { operate: ["*"] }\nchannels: ["C01OPS"]\n');
    expect(typed(["explain", "--as", "U0X", "--in", "C01OPS", "vm.stop", "a"], file).code).toBe(0);
    const elsewhere = typed(["explain", "--as", "U0X", "--in", "C0XX", "vm.stop", "a"], file);
    expect(elsewhere).toMatchObject({ code: 1, said: expect.stringContaining("yml line 2") });
  });
});

describe("policy test", () => {
  it("holds for the example that comes with Gatehouse", () => {
    expect(typed(["test", "docs/policy-cases.yml"])).toEqual({
      code: 0,
      said: "11 of 11 cases as expected\n",
    });
  });

  it("shows each case that differs, and exits with 1", () => {
    const cases = written(
      "cases.yml",
      "- { who: U0X, run: vm.stop web-1, expect: allowed }\n- { who: U0X, run: vm.list, expect: allowed }\n",
    );
    const { code, said } = typed(["test", cases]);
    expect(code).toBe(1);
    expect(said).toMatch(/^case 1: U0X vm.stop web-1\n +expected allowed\n +but is +refused: /);
    expect(said).toContain("1 of 2 cases as expected");
  });

  it("names what is wrong in a table", () => {
    const cases = written("odd.yml", "- { who: U0X, run: vm.list, expect: maybe }\n");
    expect(typed(["test", cases])).toMatchObject({
      code: 1,
      said: expect.stringContaining("expect"),
    });
  });
});

it.each([[[]], [["tset"]], [["explain", "vm.stop"]], [["check", "--colour"]]])(
  "policy %s is answered with its usage",
  (words) => {
    expect(typed(words)).toMatchObject({ code: 64, said: expect.stringContaining("usage: ") });
  },
);
