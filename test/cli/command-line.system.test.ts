import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { runCommandLine, usageOfPrograms } from "../../src/cli/command-line.ts";
import { auditUsage } from "../../src/cli/audit.ts";
import { programsFor } from "../../src/cli/programs.ts";
import { compileCache } from "../support/compile-cache.ts";
import { root } from "../structure/sources.ts";
import { handedToPrograms } from "../../src/features/index.ts";

const programs = programsFor(async () => handedToPrograms);

/** A terminal that remembers; none of its programs runs. */
function terminal() {
  const said: string[] = [];
  const complaints: string[] = [];
  return {
    out: {
      write: (text: string) => void said.push(text),
      complain: (text: string) => void complaints.push(text),
    },
    said: () => said.join(""),
    complaint: () => complaints.join(""),
  };
}

describe("the words on the command line", () => {
  const ran: (readonly [string, readonly string[]])[] = [];
  const recording = Object.fromEntries(
    Object.entries(programs).map(([name, program]) => [
      name,
      {
        ...program,
        load: async () => ({
          ...(await program.load()),
          run: (words: readonly string[]) => (ran.push([name, words]), 0),
        }),
      },
    ]),
  );
  const usage = { exitCode: 0, said: usageOfPrograms(programs) };
  const refused = (sentence: string) => ({
    exitCode: 64,
    complaint: `${sentence}\n${usageOfPrograms(programs)}`,
  });

  it.each<[line: string, outcome: object]>([
    ["", { role: "all" }],
    ["gateway", { role: "gateway" }],
    ["worker", { role: "worker" }],
    ["worker 2", refused('"worker" takes no "2".')],
    ["worker --help", usage],
    ["--help", usage],
    ["-h", usage],
    ["help", usage],
    ["help audit", { exitCode: 0, said: `${auditUsage}\n` }],
    ["audit --help", { exitCode: 0, said: `${auditUsage}\n` }],
    ["audit verify -h", { exitCode: 0, said: `${auditUsage}\n` }],
    ["audit erase -- --help", { exitCode: 0, ran: ["audit", ["erase", "--", "--help"]] }],
    ["audit verify file", { exitCode: 0, ran: ["audit", ["verify", "file"]] }],
    ["gatway", refused('Unknown command "gatway". Did you mean "gateway"?')],
    ["help adit", refused('Unknown command "adit". Did you mean "audit"?')],
    ["toString", refused('Unknown command "toString".')],
    ["--verbose", refused('Unknown command "--verbose".')],
  ])("%s", async (line, outcome) => {
    const words = line.split(" ").filter((word) => word !== "");
    const { out, said, complaint } = terminal();
    const ended = await runCommandLine(words, recording, out);
    const program = ran.pop();
    expect({
      ...ended,
      ...(said() && { said: said() }),
      ...(complaint() && { complaint: complaint() }),
      ...(program && { ran: program }),
    }).toEqual(outcome);
  });

  it("have a usage for each program, in one list and each by itself", async () => {
    for (const name of Object.keys(programs)) {
      expect(usageOfPrograms(programs)).toContain(`\n  ${name} `);
      const { out, said } = terminal();
      expect(await runCommandLine([name, "--help"], programs, out)).toEqual({ exitCode: 0 });
      expect(said()).toMatch(new RegExp(`^usage: node gatehouse.mjs ${name}`));
      // What a program does is in the list, too: its words, where it has several
      const words = /<what>/.test(said()) ? [...said().matchAll(/^ {2}([a-z][a-z-]*)/gm)] : [];
      const [, line = ""] = new RegExp(`\\n  ${name} (.*)`).exec(usageOfPrograms(programs)) ?? [];
      expect(words.filter(([, word = ""]) => !line.includes(word))).toEqual([]);
    }
  });
});

describe("without any configuration", () => {
  it.each<[line: string, code: number, said: RegExp, complaint: RegExp]>([
    [
      "--version",
      0,
      /^gatehouse \d+\.\d+\.\d+(-rc\.\d+)?(\.dev|-dev)?( \([0-9a-f]{12}\))?, Node\.js v\d/,
      /^$/,
    ],
    [
      "-V",
      0,
      /^gatehouse \d+\.\d+\.\d+(-rc\.\d+)?(\.dev|-dev)?( \([0-9a-f]{12}\))?, Node\.js v\d/,
      /^$/,
    ],
    ["gatway", 64, /^$/, /^Unknown command "gatway"\. Did you mean "gateway"\?\nusage: /],
    ["audit verfy", 64, /^$/, /^There is no "audit verfy"\nusage: /],
    ["audit verify --what", 64, /^$/, /^Unknown option '--what'.*\nusage: /],
    ["audit verify /no/such/file", 2, /^$/, /^ENOENT/],
    ["policy", 64, /^$/, /^usage: node gatehouse\.mjs policy/],
    ["policy check /no/such/file", 1, /^$/, /^\/no\/such\/file can't be read: ENOENT/],
    ["attestation", 64, /^$/, /^Name the file to check\nusage: /],
    ["attestation check --what", 64, /^$/, /^Unknown option '--what'.*\nusage: /],
    ["attestation check --json /no/such/file", 2, /^$/, /^ENOENT/],
    ["doctor everything", 64, /^$/, /^usage: node gatehouse\.mjs doctor/],
    ["token --what", 64, /^$/, /^Unknown option '--what'.*\nusage: /],
    ["completion fish", 64, /^$/, /^usage: node gatehouse\.mjs completion/],
    ["propose", 64, /^$/, /^The command is missing.*\nusage: /],
  ])("%s ends with %i", async (line, exitCode, expected, complaint) => {
    const { out, said, complaint: complained } = terminal();
    expect(await runCommandLine(line.split(" "), programs, out)).toEqual({ exitCode });
    expect(said()).toMatch(expected);
    expect(complained()).toMatch(complaint);
  });

  const run = (...words: string[]) => {
    const env = { ...compileCache, PATH: "" };
    const child = spawnSync(process.execPath, ["gatehouse.mjs", ...words], { cwd: root, env });
    return `${child.status}: ${child.stdout.toString()}${child.stderr.toString()}`;
  };

  it("a process of its own ends with the same", () => {
    expect(run("gatway")).toMatch(/^64: Unknown command "gatway"/);
  });

  it("a person who presses Tab or asks for the version waits for no package to be loaded", () => {
    const counted =
      'import { registerHooks } from "node:module"; const seen = []; registerHooks({ load: (url, context, next) => (seen.push(url), next(url, context)) }); process.on("exit", () => process.stderr.write(seen.join("\\n")));';
    for (const words of [
      ["--version"],
      ["--help"],
      ["completion", "words"],
      ["completion", "words", "propose", "vm"],
      ["completion", "words", "propose", "vm", "restart"],
      ["token"],
    ]) {
      const hook = `--import=data:text/javascript,${encodeURIComponent(counted)}`;
      const how = { cwd: root, env: { PATH: "" } };
      const child = spawnSync(process.execPath, [hook, "gatehouse.mjs", ...words], how);
      const loaded = child.stderr
        .toString()
        .split("\n")
        .filter((url) => url.startsWith("file:"));
      const isUsed = child.stdout.toString() !== "" && loaded.length > 5;
      expect({ words, isUsed }).toEqual({ words, isUsed: true });
      expect(loaded.filter((url) => url.includes("/node_modules/"))).toEqual([]);
      expect(loaded.length, loaded.join("\n")).toBeLessThan(20);
    }
  });

  it("whoever verifies the trail is asked for Redis alone, and the process ends with 78", () => {
    expect(run("audit", "verify")).toMatch(/^78: .*\n {2}REDIS_URL: is missing.*\n$/);
  });
});
