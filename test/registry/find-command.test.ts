import { describe, expect, it } from "vitest";
import { commands } from "../support/commands.ts";
import { type Command, verbsOf } from "../../src/registry/define.ts";
import { parseCommand } from "../../src/registry/parse.ts";

function read(text: string) {
  const parsed = parseCommand(text, commands);
  if ("refusal" in parsed) return parsed.refusal;
  return { command: parsed.command.name, input: parsed.input };
}

const snapshotOf = (vm: string) => ({ vm, name: "nightly" });
const nightly = { vm: "db-1", snapshot: "nightly", noSafety: true };

/** What the buttons of a refusal would run. */
function meant(text: string) {
  const said = read(text);
  if (!("near" in said)) throw new Error(`${text} is understood`);
  const near = said.near.map(({ command, input }) => [command.name, input]);
  return [`${said.text} ${said.hint ?? ""}`, ...near];
}

describe("words as people write them", () => {
  it.each([
    ["vm reboot web-1", "vm restart", { vms: ["web-1"] }],
    ["vm status web-1", "vm show", { vm: "web-1" }],
    ["vm describe web-1", "vm show", { vm: "web-1" }],
    ["vm ls", "vm list", {}],
    ["vm shutdown web-1", "vm stop", { vms: ["web-1"] }],
    ["project ls", "project list", {}],
    ["project rm staging", "project delete", { project: "staging" }],
    ["vm restart web-2 please", "vm restart", { vms: ["web-2"] }],
    ["vm please restart web-2, thanks!", "vm restart", { vms: ["web-2"] }],
    ["please vm restart web-2", "vm restart", { vms: ["web-2"] }],
    ["vm show web-2 please", "vm show", { vm: "web-2" }],
    ["vm restart web-2, web-1", "vm restart", { vms: ["web-2", "web-1"] }],
    ["vm restart web-2,web-1", "vm restart", { vms: ["web-2", "web-1"] }],
    ["vm restart web-2 , web-1 and db-1.", "vm restart", { vms: ["web-2", "web-1", "db-1"] }],
    ["vm snapshot web-2, web-1 nightly", "vm snapshot", { vm: "web-2,web-1", name: "nightly" }],
    ["vm snapshot web-2 ,web-1", "vm snapshot", { vm: "web-2,web-1" }],
    ["vm show db-1.", "vm show", { vm: "db-1" }],
    ["vm  show \t db-1?", "vm show", { vm: "db-1" }],
    ["vm restart web-?", "vm restart", { vms: ["web-?"] }],
    ["vm show <http://db-1|db-1>", "vm show", { vm: "db-1" }],
    ["vm show <http://db-1>.", "vm show", { vm: "db-1" }],
    ["vm restart http://web-2/", "vm restart", { vms: ["web-2"] }],
    ["vm restart `web-2`, `web-1`.", "vm restart", { vms: ["web-2", "web-1"] }],
  ])("mean what they can only mean: %s", (text, command, input) => {
    expect(read(text)).toEqual({ command, input });
  });

  it.each([
    ['vm restart "web-2,"', "vm restart", { vms: ["web-2,"] }],
    ['vm show "please"', "vm show", { vm: "please" }],
    ['vm show "db-1."', "vm show", { vm: "db-1." }],
    ['vm restart "and"', "vm restart", { vms: ["and"] }],
    ["vm show --vm db-1.", "vm show", { vm: "db-1." }],
    ["vm show ..", "vm show", { vm: ".." }],
    ["gatehouse freeze please wait.", "gatehouse freeze", { reason: "please wait." }],
    ["gatehouse can-i vm restart web-1,", "gatehouse can-i", { command: "vm restart web-1," }],
  ])("are the thing itself in quotes, in flags, and in a text: %s", (text, command, input) => {
    expect(read(text)).toEqual({ command, input });
  });

  it.each([
    "vm stop ../projects/1",
    "vm stop web-1;web-2",
    "vm stop $(reboot)",
    "vm stop a%2fb",
    "vm stop web-1#x",
    "vm stop https://evil.example/vm",
  ])("don't lose what no name has: %s", (text) => {
    expect(read(text)).toEqual({ command: "vm stop", input: { vms: [text.slice(8)] } });
  });
});

describe("words from any keyboard", () => {
  it.each([
    ["ｖｍ　ｓｈｏｗ　web-2", "vm show", { vm: "web-2" }],
    ["／vm ｌｉｓｔ －－ｓｔａｔｕｓ＝ERROR", "vm list", { status: "ERROR" }],
    ["vm list ‒status error", "vm list", { status: "error" }],
    ["vm list ――sort name", "vm list", { sort: "name" }],
    ["vm list --sort ＮＡＭＥ", "vm list", { sort: "name" }],
    ["vm list --sort Name", "vm list", { sort: "name" }],
    ["gatehouse can‑i vm list", "gatehouse can-i", { command: "vm list" }],
    ["vm restore db-1 nightly －－no‑safety", "vm restore", nightly],
    ["vm restart web-2， web-1、db-1。", "vm restart", { vms: ["web-2", "web-1", "db-1"] }],
    ["vm snapshot web-2，web-1 nightly", "vm snapshot", { vm: "web-2,web-1", name: "nightly" }],
    ["vm restart web-2 ＆ web-1", "vm restart", { vms: ["web-2", "web-1"] }],
    ["vm show web-2？", "vm show", { vm: "web-2" }],
    ["restart web-2 ｐｌｅａｓｅ！", "vm restart", { vms: ["web-2"] }],
    ["help ｖｍ", "gatehouse help", { command: "ｖｍ" }],
  ])("are commands, flags, and lists: %s", (text, command, input) => {
    expect(read(text)).toEqual({ command, input });
  });

  it("stay as they were typed where a change stores them", () => {
    expect(read("vm snapshot db-1 ｎｉｇｈｔ‑１")).toMatchObject({
      input: { name: "ｎｉｇｈｔ‑１" },
    });
  });
});

describe("words around names", () => {
  it.each([
    ["vm restart the db", "vm restart", { vms: ["db"] }],
    ["restart the db now", "vm restart", { vms: ["db"] }],
    ["restart both web-2 and the web-1", "vm restart", { vms: ["web-2", "web-1"] }],
    ["vm restart web-2, then web-1", "vm restart", { vms: ["web-2", "web-1"] }],
    ["vm show the web-2", "vm show", { vm: "web-2" }],
    ["restart the web-2 vm please", "vm restart", { vms: ["web-2"] }],
    ["show the payments project", "project show", { project: "payments" }],
    ["vm show web-1 in payments", "vm show", { vm: "payments/web-1" }],
    ["restart web-1 in the payments project", "vm restart", { vms: ["payments/web-1"] }],
    ["restart web-2 and web-1 in staging", "vm restart", { vms: ["web-2", "staging/web-1"] }],
    ["vm snapshot the db-1 in payments nightly", "vm snapshot", snapshotOf("payments/db-1")],
    ["vm snapshot web-2 and db-1 nightly", "vm snapshot", snapshotOf("web-2,db-1")],
    ['vm restart "the"', "vm restart", { vms: ["the"] }],
    ['vm restart "in" "10"', "vm restart", { vms: ["in", "10"] }],
    ['vm show "it"', "vm show", { vm: "it" }],
    ["vm restart --vms=the", "vm restart", { vms: ["the"] }],
    ["vm restart the-1", "vm restart", { vms: ["the-1"] }],
  ])("are no names, except in quotes and flags: %s", (text, command, input) => {
    expect(read(text)).toEqual({ command, input });
  });

  it.each(["restart it", "vm restart the", "restart that", "restart a vm", "vm show this"])(
    "leave the target to be asked for: %s",
    (text) => {
      expect(read(text)).toMatchObject({ lacks: { input: {} } });
    },
  );
});

describe("a change that names a time", () => {
  it.each([
    ["restart web-2 in 10 minutes", "vm restart web-2", "restart web-2 in 10 minutes"],
    ["vm restart web-2 at 5pm", "vm restart web-2", "restart web-2 at 5pm"],
    ["vm stop web-2 and db-1 tonight", "vm stop web-2 and db-1", "stop web-2 and db-1 tonight"],
    ["vm restart web-2 on Friday", "vm restart web-2", "restart web-2 on Friday"],
    ["vm restart web-2 friday", "vm restart web-2", "restart web-2 friday"],
    ["vm restart web-2 every night", "vm restart web-2", "restart web-2 every night"],
    ["vm restart web-2 when it is idle", "vm restart web-2", "restart web-2 when it is idle"],
    ["tomorrow restart web-2", "vm restart web-2", "restart web-2 tomorrow"],
    ["in 10 minutes please restart web-2", "vm restart web-2", "restart web-2 in 10 minutes"],
    ["vm restart in 10 minutes", "vm restart", "restart in 10 minutes"],
    ["vm snapshot db-1 in an hour", "vm snapshot db-1", "snapshot db-1 in an hour"],
    ["vm snapshot db-1 tomorrow", "vm snapshot db-1", "snapshot db-1 tomorrow"],
    ["vm resize web-2 --cpu 4 --memory 8 tonight", "vm resize web-2", "resize web-2 tonight"],
    [
      "vm restore db-1 nightly at 17:00",
      "vm restore db-1 nightly",
      "restore db-1 nightly at 17:00",
    ],
    ['vm restart web-2 later --break-glass "it hangs"', "vm restart web-2", "restart web-2 later"],
    ["project delete staging next week", "project delete staging", "delete staging next week"],
    ["vm console db-1 tomorrow", "vm console db-1", "console db-1 tomorrow"],
  ])("isn't run, and says what to type instead: %s", (text, command, later) => {
    const said = read(text);
    expect(said).toMatchObject({
      text: expect.stringContaining("Gatehouse doesn't schedule changes, so nothing was done"),
      hint: `Type \`/${command}\` when it is to run. \`/remind me to ${later}\` has Slack remind you.`,
    });
  });

  it.each([
    ["vm snapshot db-1 nightly", { vm: "db-1", name: "nightly" }],
    ["vm snapshot db-1 friday", { vm: "db-1", name: "friday" }],
    ['vm snapshot db-1 "at 5pm"', { vm: "db-1", name: "at 5pm" }],
    ['vm restart "tomorrow"', { vms: ["tomorrow"] }],
    ["vm restart web-2 tomorrow-1", { vms: ["web-2", "tomorrow-1"] }],
  ])("isn't one whose names only look like it: %s", (text, input) => {
    expect(read(text)).toMatchObject({ input });
  });
});

describe("several names for a command that takes one", () => {
  it.each(["vm show web-2 and db-1", "vm show web-2, db-1", "vm show web-2 & db-1"])(
    "are told apart, with what to type: %s",
    (text) => {
      expect(read(text)).toMatchObject({
        text: "/vm show takes one VM, not several.",
        hint: "Run it for each: `/vm show web-2`, `/vm show db-1`.",
      });
    },
  );
});

describe("a mention, which needs no /vm", () => {
  it.each([
    ["restart web-2 please", "vm restart", { vms: ["web-2"] }],
    ["please reboot web-2", "vm restart", { vms: ["web-2"] }],
    ["status", "gatehouse status", {}],
    ["restore db-1", "vm restore", { vm: "db-1" }],
    ["list payments", "vm list", { project: "payments" }],
    ["create", "project create", {}],
    ["list vms", "vm list", {}],
    ["list all VMs in payments", "vm list", { project: "payments" }],
    ["list projects", "project list", {}],
    ['list "vms"', "vm list", { project: "vms" }],
    ["restart vm web-2", "vm restart", { vms: ["web-2"] }],
    ["show the project payments", "project show", { project: "payments" }],
  ])("is understood where there is one meaning: %s", (text, command, input) => {
    expect(read(text)).toEqual({ command, input });
  });

  it("needs no gatehouse before its commands", () => {
    for (const { name, example } of commands.filter(({ name: one }) => one.startsWith("gate")))
      expect(read(example.replace("/gatehouse ", ""))).toMatchObject({ command: name });
  });
});

describe("what can only be guessed", () => {
  it.each([
    ["vm restat web-2", /no restat\. Did you mean `\/vm restart web-2`\?$/, "vm restart"],
    ["vm rebot web-2", /Did you mean `\/vm restart web-2`\?$/, "vm restart"],
    ["vm web-2 reboot", /Did you mean `\/vm restart web-2`\?/, "vm restart"],
    ["gatehouse restart web-2", /no restart\. Did you mean `\/vm restart web-2`\?$/, "vm restart"],
    ["restat web-2", /no command restat\. Did you mean `\/vm restart web-2`\?$/, "vm restart"],
    ["vm logs web-2", /^\/vm has no logs: the compute service returns none\./, "vm console"],
    ["logs web-2", /^There is nothing called logs: /, "vm console"],
    ["vm delete web-2", /^\/vm has no delete: a VM is deleted only with its project\./, "vm stop"],
    ["vm rm web-2", /Did you mean `\/vm stop web-2`\?$/, "vm stop"],
    ["delete vm web-2", /^\/vm has no delete: .* Did you mean `\/vm stop web-2`\?$/, "vm stop"],
    [
      "web-2 restart",
      /^There is no command web-2\. Did you mean `\/vm restart web-2`\?$/,
      "vm restart",
    ],
  ])("waits for a button: %s", (text, said, command) => {
    const [words, near, ...others] = meant(text);
    expect(words).toMatch(said);
    expect(near).toEqual([
      command,
      command === "vm console" ? { vm: "web-2" } : { vms: ["web-2"] },
    ]);
    expect(others).toEqual([]);
  });

  it("has a button for each meaning", () => {
    expect(meant("vm rstart web-2").slice(1)).toEqual([
      ["vm start", { vms: ["web-2"] }],
      ["vm restart", { vms: ["web-2"] }],
    ]);
    expect(meant("status web-2").slice(1)).toEqual([
      ["vm show", { vm: "web-2" }],
      ["project show", { project: "web-2" }],
    ]);
    const [words, ...near] = meant("show payments");
    expect(words).toBe(
      "show can be several commands. Did you mean `/vm show payments` or `/project show payments`?",
    );
    expect(near.map(([name]) => name)).toEqual(["vm show", "project show"]);
  });

  it("has no button for what couldn't be run, or would skip approvals", () => {
    for (const text of ["vm restat web-1 --yes", 'vm restat web-1 --break-glass "it burns"'])
      expect(meant(text)).toHaveLength(1);
  });

  it("is no suggestion when a word fits nothing, except that only words can skip approvals", () => {
    expect(meant("gatehouse request access")).toEqual([
      "/gatehouse has no request. `/gatehouse help` lists its commands.",
    ]);
    expect(meant("vm restat web-1 --yes")).toEqual([
      "/vm has no restat. `/vm help` lists its commands.",
    ]);
    expect(meant('vm restat web-1 --break-glass "it burns"')).toEqual([
      '/vm has no restat. Did you mean `/vm restart web-1 --break-glass "it burns"`?',
    ]);
  });

  it.each([
    ["hi", "hi"],
    ["what can you do", "what can you do"],
    ["who restarted web-2?", "who restarted web-2?"],
    ["why is web-2 red", "why is web-2 red"],
    ["please what is wrong with web-2", "what is wrong with web-2"],
    ["gatehouse why is web-2 red", "why is web-2 red"],
    ["vm what is wrong with web-2", "what is wrong with web-2"],
    ["show me web-2", "show me web-2"],
    ["web-2", "web-2"],
  ])("may be a sentence: %s", (text, sentence) => {
    expect(read(text)).toMatchObject({ sentence, near: [] });
  });

  it.each([
    "restat web-2",
    "vm web-1",
    "vms list",
    "logs web-2",
    "vm restart web-1 --force",
    "gatehouse request access",
    'what "is this',
  ])("is no sentence: %s", (text) => {
    expect(read(text)).not.toHaveProperty("sentence");
  });

  it("asks for the target, unless something else is wrong or there is no time to ask", () => {
    const lacks = (text: string) => {
      const said = read(text);
      return "lacks" in said ? said.lacks?.input : undefined;
    };
    expect(lacks("vm restart")).toEqual({});
    expect(lacks("vm restart please")).toEqual({});
    expect(lacks("vm resize --cpu 4")).toEqual({ cpu: "4" });
    expect(lacks("vm resize --cpu 1e9")).toBeUndefined();
    expect(lacks('vm restart --break-glass "it burns"')).toBeUndefined();
  });
});

/** Throws when two commands answer to one word, or a word can't be typed. */
function checkWords(all: readonly Command[]): void {
  const taken = new Map<string, string>();
  for (const command of all) {
    const root = command.name.split(" ")[0] ?? "";
    for (const verb of [...verbsOf(command), ...Object.keys(command.suggestFor ?? {})]) {
      const word = `${root} ${verb}`;
      if (!/^[a-z]+(-[a-z]+)*( [a-z]+(-[a-z]+)*)?$/.test(verb))
        throw new Error(`${word}: must be one word of a-z, or two`);
      const other = taken.get(word);
      if (other !== undefined) throw new Error(`${word} is both ${other} and ${command.name}`);
      taken.set(word, command.name);
    }
  }
}

describe("the words of all commands", () => {
  const withWords = (over: Partial<Command>) =>
    commands.map((one) => (one.name === "vm stop" ? ({ ...one, ...over } as Command) : one));

  it("belong to one command each", () => {
    checkWords(commands);
    for (const over of [{ aliases: ["reboot"] }, { suggestFor: { restart: "why" } }])
      expect(() => checkWords(withWords(over))).toThrow(/is both vm (restart|stop) and vm /);
    expect(() => checkWords(withWords({ aliases: ["Power Off"] }))).toThrow("one word of a-z");
  });

  it("are its own name first", () => {
    expect(verbsOf({ name: "vm restart", aliases: ["reboot"] })).toEqual(["restart", "reboot"]);
  });
});
