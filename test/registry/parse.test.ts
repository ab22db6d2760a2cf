import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { commands } from "../support/commands.ts";
import { UserError } from "../../src/errors.ts";
import { checkInput, parseCommand, parseInput, parseInvocation } from "../../src/registry/parse.ts";
import { argumentsOf, flagName } from "../../src/registry/define.ts";

/** What a person gets: the command's name and its input, or the refusal. */
function read(text: string) {
  const parsed = parseCommand(text, commands);
  if ("refusal" in parsed) return { text: parsed.refusal.text, hint: parsed.refusal.hint };
  return { command: parsed.command.name, input: parsed.input };
}

const commandNamed = (name: string) => {
  const command = commands.find((one) => one.name === name);
  if (!command) throw new Error(`no command ${name}`);
  return command;
};

describe("a command in words", () => {
  it.each([
    ["vm restart web-1", "vm restart", { vms: ["web-1"] }],
    ["/VM Restart web-1 web-2", "vm restart", { vms: ["web-1", "web-2"] }],
    ["vm list", "vm list", {}],
    ["vm list payments —status ERROR", "vm list", { project: "payments", status: "ERROR" }],
    ["vm list -Status=ERROR payments", "vm list", { project: "payments", status: "ERROR" }],
    ["vm list --project payments", "vm list", { project: "payments" }],
    ["vm restart --vms=a,b", "vm restart", { vms: ["a", "b"] }],
    [
      "vm snapshot db-1 “before the upgrade”",
      "vm snapshot",
      { vm: "db-1", name: "before the upgrade" },
    ],
    ["vm show it's", "vm show", { vm: "it's" }],
    ['vm show "--web"', "vm show", { vm: "--web" }],
    ["vm resize web-1 --cpu 4 --memory 8", "vm resize", { vms: ["web-1"], cpu: "4", memory: "8" }],
    ["vm attest web-1 --raw", "vm attest", { vm: "web-1", raw: true }],
    [
      "gatehouse freeze storage is failing — again",
      "gatehouse freeze",
      { reason: "storage is failing — again" },
    ],
    [
      "gatehouse can-i vm list --status ERROR",
      "gatehouse can-i",
      { command: "vm list --status ERROR" },
    ],
  ])("%s", (text, command, input) => {
    expect(read(text)).toEqual({ command, input });
  });

  it.each([
    ["vm", "vm"],
    ["vm help", "vm"],
    ["vm --help", "vm"],
    ["vm help restart", "vm restart"],
    ["vm restart web-1 --help", "vm restart"],
    ["gatehouse", undefined],
    ["gatehouse help vm restart", "vm restart"],
    ["", undefined],
    ["please", undefined],
    ["help vm restart", "vm restart"],
  ])("asks for help: %s", (text, topic) => {
    expect(read(text)).toEqual({
      command: "gatehouse help",
      input: topic === undefined ? {} : { command: topic },
    });
  });

  it("has its arguments checked, and nothing coerced", () => {
    const parsed = parseCommand("vm resize web-1 --cpu 4 --memory 8", commands);
    expect(parsed).toMatchObject({ args: { vms: ["web-1"], cpu: 4, memory: 8 } });
  });
});

describe("words that are no command", () => {
  it.each([
    ["vm restrat web-1", "/vm has no restrat.", "Did you mean `/vm restart web-1`?"],
    [
      "vm web-1",
      "/vm has no web-1.",
      "Did you mean `/vm show web-1`? `/vm help` lists its commands.",
    ],
    [
      "vm web-1 restart",
      "/vm has no web-1.",
      "Did you mean `/vm restart web-1`? `/vm help` lists its commands.",
    ],
    ["gatehouse xyzzy", "/gatehouse has no xyzzy.", "`/gatehouse help` lists its commands."],
    ["vms list", "There is no command vms.", "Did you mean `/vm list`?"],
    ["vms", "There is no command vms.", "Did you mean `/vm`?"],
    [
      "destroy everything",
      "There is no command destroy.",
      "The commands are `/vm`, `/project`, `/gatehouse`.",
    ],
    ['vm restart "web-1', "A quote is not closed.", 'Close it with ", or omit the quotes.'],
  ])("%j is answered with what was meant", (text, refusal, hint) => {
    expect(read(text)).toEqual({ text: refusal, hint });
  });

  it("are shown short and without a way out of a code span", () => {
    expect(read(`vm ${"x".repeat(200)}`)).toEqual({
      text: `/vm has no ${"x".repeat(59)}….`,
      hint: `Did you mean \`/vm show ${"x".repeat(59)}…\`? \`/vm help\` lists its commands.`,
    });
    expect(read('vm "a`b c"')).toEqual({
      text: "/vm has no a`b c.",
      hint: 'Did you mean `/vm show "ab c"`? `/vm help` lists its commands.',
    });
  });
});

const restart = "Usage: `/vm restart <vm…>`. Example: `/vm restart web-1`.";
const resize =
  "Usage: `/vm resize <vm…> --cpu CPU --memory MEMORY`. Example: `/vm resize web-1 --cpu 4 --memory 8`.";

describe("arguments that can't be", () => {
  it.each([
    ["vm restart", "/vm restart needs a VM.", restart],
    ["vm restart --vms ,", "vm must not be empty.", restart],
    [
      "vm restart web-1 --force",
      "/vm restart has no --force. Nothing was done.",
      "Usage: `/vm restart <vm…>`.",
    ],
    [
      "vm restart web-1 --yes --force",
      "/vm restart has no --yes. Nothing was done.",
      "Usage: `/vm restart <vm…>`.",
    ],
    [
      "vm list --stats ERROR",
      "/vm list has no --stats. Nothing was done.",
      "Did you mean `--status`?",
    ],
    [
      "vm show web-1 web-2",
      "That is one word too many: web-2.",
      "Usage: `/vm show <vm>`. Example: `/vm show web-1`.",
    ],
    [
      "vm show a b c",
      "That is 2 words too many: b.",
      "Usage: `/vm show <vm>`. Example: `/vm show web-1`.",
    ],
    ["vm resize web-1 --cpu --memory 8", "--cpu needs a value.", resize],
    [
      "vm list --sort",
      "--sort needs one of trouble, name, project, cpu, memory, newest.",
      expect.stringContaining("Usage: `/vm list"),
    ],
    ["vm resize web-1 --cpu 1 --cpu 2", "--cpu is given twice.", resize],
    [
      "vm attest web-1 --raw=yes",
      "--raw takes no value.",
      "Usage: `/vm attest <vm> [--raw] [--evidence]`. Example: `/vm attest web-1`.",
    ],
    [
      "project create --type VM",
      "--type must be one of TEE_VM, GIT_DEPLOY, CONTAINER.",
      expect.stringContaining("Usage: `/project create"),
    ],
    [
      "project create --name a --type CONTAINER --region eu --cpu 4",
      "--cpu must be omitted: only TEE_VM has it.",
      expect.stringContaining("Usage: `/project create"),
    ],
  ])("%s is answered in one sentence, with the right usage", (text, refusal, hint) => {
    expect(read(text)).toEqual({ text: refusal, hint });
  });

  it.each([
    "1e9",
    "-1",
    "NaN",
    "0x10",
    "٣",
    "1,5",
    "1.5",
    "0",
    "1000001",
    "",
    " ",
    "+1",
    "１",
    "1_0",
  ])("a number is digits only, not %j", (number) => {
    const hint = resize;
    const said = read(`vm resize web-1 --memory 8 --cpu "${number}"`);
    expect(said).toEqual({
      text: expect.stringMatching(
        /^--cpu must be a whole number from 1 to 1,000,000(, in digits)?\.$/,
      ),
      hint,
    });
  });

  it("a name is at most 300 characters", () => {
    expect(read(`vm show ${"x".repeat(301)}`)).toMatchObject({
      text: "vm must be at most 300 characters.",
    });
  });
});

describe("a command with a form", () => {
  it("may be short of what the form asks for, but not of its target", () => {
    expect(parseCommand("project create --name shop", commands)).toMatchObject({
      input: { name: "shop" },
      args: undefined,
    });
    expect(read("vm restore db-1")).toEqual({ command: "vm restore", input: { vm: "db-1" } });
    expect(read("vm resize web-1")).toEqual({ command: "vm resize", input: { vms: ["web-1"] } });
    expect(read("project update staging")).toEqual({
      command: "project update",
      input: { project: "staging" },
    });
    expect(read("vm restore")).toMatchObject({ text: "/vm restore needs a VM." });
    expect(read("project delete")).toMatchObject({ text: "/project delete needs a project." });
  });

  it("may be short of it when a button names it, but what is given must be right, and known", () => {
    const restore = commandNamed("vm restore");
    expect(parseInvocation(restore, { vm: "db-1" })).toMatchObject({ args: undefined });
    expect(parseInvocation(restore, { vm: "db-1", snapshot: "s-1" })).toMatchObject({
      args: { vm: "db-1", snapshot: "s-1" },
    });
    for (const wrong of [{ vm: "db-1", snapshot: 7 }, { vm: "db-1", force: true }, {}])
      expect(() => parseInvocation(restore, wrong)).toThrow(UserError);
  });

  it("must be whole in an emergency: nothing is asked for then", () => {
    expect(read('vm restore db-1 --break-glass "the index is corrupt"')).toMatchObject({
      text: "/vm restore needs a snapshot.",
    });
  });

  it("gets every problem by its field", () => {
    const create = commandNamed("project create");
    expect(checkInput(create, { name: "x".repeat(101), type: "TEE_VM", cpu: "1e9" })).toEqual({
      problems: [
        { key: "name", text: "--name must be at most 100 characters." },
        { key: "region", text: "/project create needs --region." },
        { key: "cpu", text: "--cpu must be a whole number from 1 to 1,000,000, in digits." },
      ],
    });
    expect(checkInput(create, { name: "x", type: "TEE_VM", region: "eu", disk: "1" })).toEqual({
      problems: [
        { key: "cpu", text: "--cpu is required for TEE_VM." },
        { key: "memory", text: "--memory is required for TEE_VM." },
      ],
    });
    expect(checkInput(commandNamed("project update"), { project: "shop" })).toEqual({
      problems: [{ key: "name", text: "--name or specs must change: nothing was given." }],
    });
  });
});

describe("arguments that were written down before", () => {
  it("are checked again, and refused when they hold anything else", () => {
    const command = commandNamed("vm restart");
    expect(parseInput(command, { vms: ["vm-1"] })).toEqual({ vms: ["vm-1"] });
    expect(() => parseInput(command, { vms: "vm-1" })).toThrow(UserError);
    expect(() => parseInput(command, { vms: ["vm-1"], force: true })).toThrow(
      "/vm restart has no --force.",
    );
    expect(() => parseInput(command, JSON.parse('{"vms":["a"],"__proto__":{"x":1}}'))).toThrow(
      UserError,
    );
    expect(() => parseInput(command, { vms: ["a"], constructor: 1 })).toThrow(UserError);
  });

  it("survive being stored: what was parsed once is parsed again to the same", () => {
    const parsed = parseCommand("vm resize web-1 --cpu 4 --memory 8", commands);
    if ("refusal" in parsed) throw new Error(parsed.refusal.text);
    const stored: Record<string, unknown> = JSON.parse(JSON.stringify(parsed.input));
    expect(parseInput(parsed.command, stored)).toEqual(parsed.args);
  });
});

/** Words as a careless or hostile person would string them together. */
const anyWords = fc
  .array(
    fc.oneof(
      fc.constantFrom(...commands.flatMap(({ name }) => name.split(" "))),
      fc.constantFrom(
        ...new Set(commands.flatMap((one) => argumentsOf(one).map(({ key }) => flagName(key)))),
      ),
      fc.constantFrom(
        "--__proto__",
        "--constructor",
        "—yes",
        "--cpu=1e9",
        "web-1",
        "4",
        '"',
        "‘",
        "`",
      ),
      fc.string({ maxLength: 20 }),
    ),
    { maxLength: 10 },
  )
  .map((words) => words.join(" "));

const startingRight = fc
  .tuple(fc.constantFrom(...commands.map(({ name }) => name)), anyWords)
  .map((parts) => parts.join(" "));

describe("any words at all", () => {
  it("are read as a command whose own schema takes the arguments, or refused in a sentence", () => {
    fc.assert(
      fc.property(fc.oneof(anyWords, startingRight), (text) => {
        const parsed = parseCommand(text, commands);
        if ("refusal" in parsed) {
          expect(parsed.refusal.text).toMatch(/\.$/s);
          expect(parsed.refusal.text.length).toBeLessThan(500);
          return;
        }
        const { command, input, args } = parsed;
        if (args === undefined) expect(command).toHaveProperty("dialog");
        else expect(parseInput(command, input)).toEqual(args);
        for (const key of Object.keys(input)) expect(command.args.shape).toHaveProperty([key]);
      }),
      { numRuns: 1000 },
    );
  });

  it("written as button values, never get by the schema with anything unknown", () => {
    fc.assert(
      fc.property(fc.constantFrom(...commands), fc.object({ maxDepth: 2 }), (command, value) => {
        const checked = checkInput(command, value);
        if ("problems" in checked) expect(checked.problems.length).toBeGreaterThan(0);
        else
          for (const key of Object.keys(value))
            if (value[key] !== undefined) expect(command.args.shape).toHaveProperty([key]);
      }),
      { numRuns: 500 },
    );
  });
});

describe("marks around a typed name", () => {
  const input = (words: string) => {
    const parsed = parseCommand(words, commands);
    return "refusal" in parsed ? parsed.refusal.text : parsed.input;
  };

  it("are formatting, except where a star can be a glob, and in quotes", () => {
    for (const [words, meant] of [
      ["vm show *web-2*", { vm: "web-2" }],
      ["vm show _web-2_", { vm: "web-2" }],
      ["vm show ~web-2~.", { vm: "web-2" }],
      ["vm restart _web-2_, ~web-1~", { vms: ["web-2", "web-1"] }],
      ["vm restart *web*", { vms: ["*web*"] }],
      ["vm restart *web-2*", { vms: ["*web-2*"] }],
      ["vm restart a_b _c_d_", { vms: ["a_b", "c_d"] }],
      ['vm show "_web-2_"', { vm: "_web-2_" }],
      ["vm restart web_ _web", { vms: ["web_", "_web"] }],
    ] as const)
      expect([words, input(words)]).toEqual([words, meant]);
  });
});
