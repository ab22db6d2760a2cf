import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { type Order, readWords, runCommandLine, usageOf } from "../../src/start/command-line.ts";
import { programs } from "../../src/start/programs.ts";
import { compileCache } from "../support/compile-cache.ts";
import { root } from "../house/sources.ts";

const usage = (of?: string): Order => ({ is: "usage", of });

describe("the words on the command line", () => {
  it.each<[line: string, order: Partial<Order>]>([
    ["", { is: "role", role: "all" }],
    ["gateway", { is: "role", role: "gateway" }],
    ["worker", { is: "role", role: "worker" }],
    ["worker 2", { is: "unknown", sentence: '"worker" takes no "2".' }],
    ["worker --help", usage()],
    ["--help", usage()],
    ["-h", usage()],
    ["help", usage()],
    ["help audit", usage("audit")],
    ["audit --help", usage("audit")],
    ["audit verify -h", usage("audit")],
    ["audit erase -- --help", { is: "program", name: "audit" }],
    ["audit verify file", { is: "program", name: "audit", words: ["verify", "file"] }],
    ["--version", { is: "version" }],
    ["-V", { is: "version" }],
    ["gatway", { is: "unknown", sentence: 'There is no "gatway". Did you mean "gateway"?' }],
    ["help adit", { is: "unknown", sentence: 'There is no "adit". Did you mean "audit"?' }],
    ["toString", { is: "unknown", sentence: 'There is no "toString".' }],
    ["--verbose", { is: "unknown", sentence: 'There is no "--verbose".' }],
  ])("%s", (line, order) => {
    const words = line.split(" ").filter((word) => word !== "");
    expect(readWords(words, programs)).toMatchObject(order);
  });

  it("have a usage for each program, in one list and each by itself", async () => {
    for (const name of Object.keys(programs)) {
      expect(usageOf(programs)).toContain(`\n  ${name} `);
      let said = "";
      const terminal = { write: (text: string) => void (said += text), complain: () => undefined };
      expect(await runCommandLine([name, "--help"], programs, terminal)).toEqual({ exitCode: 0 });
      expect(said).toMatch(new RegExp(`^usage: node gatehouse.mjs ${name}`));
    }
  });
});

describe("without any configuration", () => {
  it.each<[line: string, code: number, said: RegExp, complaint: RegExp]>([
    ["--version", 0, /^gatehouse \d+\.\d+\.\d+, Node\.js v\d/, /^$/],
    ["gatway", 64, /^$/, /^There is no "gatway"\. Did you mean "gateway"\?\nusage: /],
    ["audit verfy", 64, /^There is no "audit verfy"\nusage: /, /^$/],
    ["audit verify --what", 64, /^Unknown option '--what'.*\nusage: /, /^$/],
    ["policy", 64, /^usage: node gatehouse\.mjs policy/, /^$/],
    ["attestation", 64, /^Name the file to check\nusage: /, /^$/],
    ["attestation check --what", 64, /^Unknown option '--what'.*\nusage: /, /^$/],
  ])("%s ends with %i", async (line, exitCode, expected, complaint) => {
    const said: string[] = [];
    const complaints: string[] = [];
    const terminal = {
      write: (text: string) => void said.push(text),
      complain: (text: string) => void complaints.push(text),
    };
    expect(await runCommandLine(line.split(" "), programs, terminal)).toEqual({ exitCode });
    expect(said.join("")).toMatch(expected);
    expect(complaints.join("")).toMatch(complaint);
  });

  it("a process of its own ends with the same, and with 78 where one is needed", () => {
    const run = (...words: string[]) => {
      const env = { ...compileCache, PATH: "" };
      const child = spawnSync(process.execPath, ["gatehouse.mjs", ...words], { cwd: root, env });
      return `${child.status}: ${child.stdout.toString()}${child.stderr.toString()}`;
    };
    expect(run("gatway")).toMatch(/^64: There is no "gatway"/);
    expect(run("audit", "verify")).toMatch(/^78: .*\n {2}REDIS_URL: is missing/);
  });
});
