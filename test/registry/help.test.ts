import { describe, expect, it } from "vitest";
import { commands } from "../support/commands.ts";
import { renderHelp } from "../../src/registry/help.ts";
import { flagName, usageOf } from "../../src/registry/define.ts";
import { complaintsOf, shownText } from "../commands/shown-text.ts";
import { md } from "../../src/messages/markdown.ts";

const usages = () => Object.fromEntries(commands.map((one) => [one.name, usageOf(one)]));

const helpOn = (topic: string) => shownText(renderHelp(commands, topic));

describe("how a command is written", () => {
  it("follows from its arguments", () => {
    expect(usages()).toMatchObject({
      "vm list": "/vm list [project] [--status STATUS] [--sort SORT] [--page PAGE] [--csv]",
      "vm show": "/vm show <vm>",
      "vm restart": "/vm restart <vm…>",
      "vm resize": "/vm resize <vm…> --cpu CPU --memory MEMORY",
      "vm snapshot": "/vm snapshot <vm> [name]",
      "project list": "/project list [--type TYPE] [--status STATUS] [--page PAGE]",
      "gatehouse help": "/gatehouse help [command]",
      "gatehouse status": "/gatehouse status",
    });
    expect(flagName("gitUrl")).toBe("--git-url");
  });

  it("is what the example shows", () => {
    for (const { name, example } of commands) expect(example).toMatch(new RegExp(`^/${name}\\b`));
  });
});

describe("/gatehouse help", () => {
  it("begins with five for every day, by examples that work, and has a button for all", () => {
    const exampleOf = ({ example }: { example: string }) => example.replace("web-1", "api-7");
    const help = renderHelp(commands, "", exampleOf);
    expect(shownText(help)).toBe(
      [
        "What you can run",
        "`/vm list payments --status RUNNING` List VMs, problems first",
        "`/vm show api-7` Show a VM, with buttons for what you can do",
        "`/vm metrics api-7 1h` Show CPU, memory and disk use of a VM as a chart",
        "`/vm restart api-7` Restart a running VM _(interrupts what runs there)_",
        "`/gatehouse jobs` Show running and waiting requests, yours first",
        `[All ${commands.length} commands]`,
        "Name a VM or project by its ID, its name, or `project/name`. `/gatehouse help vm show` shows details of one command. In a thread, write `@gatehouse vm show api-7`.",
      ].join("\n"),
    );
    expect(JSON.stringify(help.blocks)).toContain(String.raw`"value":"{\"command\":\"all\"}"`);
    expect(complaintsOf(help)).toEqual([]);
  });

  it("names break-glass for those who have it, and for nobody else", () => {
    const line = "🚨 In an emergency you can skip approval";
    expect(shownText(renderHelp(commands, "", undefined, md`${line}`))).toContain(line);
    expect(shownText(renderHelp(commands, "all", undefined, md`${line}`))).toContain(line);
    expect(shownText(renderHelp(commands))).not.toContain("break-glass");
  });

  it("fills them up for somebody who may only look", () => {
    const reads = commands.filter((one) => one.kind === "read" && one.class === "read");
    const shown = shownText(renderHelp(reads));
    expect(shown.match(/^`\//gm)).toHaveLength(5);
  });

  it("lists every command that the person may run, by its slash command, and links long ones", () => {
    const help = renderHelp(commands, "all");
    const text = shownText(help);
    for (const command of commands) {
      expect(text).toContain(`\`/${command.name}`);
      expect(text).toContain(command.summary);
    }
    expect(text).toContain(
      "`/project create --name NAME --type TYPE --region REGION [--cpu CPU] [--memory MEMORY] [--disk DISK] …` Create a project; a form asks for what is missing",
    );
    expect(text).toMatch(/What you can run[^]*\*\/vm\*[^]*\*\/project\*[^]*\*\/gatehouse\*/);
    expect(complaintsOf(help)).toEqual([]);
    expect(text).toContain("[/project create …]");
    expect(JSON.stringify(help.blocks)).toContain(
      String.raw`"value":"{\"command\":\"project create\"}"`,
    );
  });

  it("lists nothing else", () => {
    const mine = commands.filter(({ name }) => name === "vm list" || name === "vm stop");
    expect(shownText(renderHelp(mine))).toBe(
      [
        "What you can run",
        "*/vm*",
        "`/vm list [project] [--status STATUS] [--sort SORT] [--page PAGE] [--csv]` List VMs, problems first",
        "`/vm stop &lt;vm…&gt;` Stop a running VM _(interrupts what runs there)_",
        "Name a VM or project by its ID, its name, or `project/name`. `/gatehouse help vm stop` shows details of one command. In a thread, write `@⁠gatehouse vm stop web-1`.".replace(
          "\u2060",
          "",
        ),
      ].join("\n"),
    );
    expect(shownText(renderHelp([]))).toBe(
      "You can't run anything here. The team that runs Gatehouse can add you to `gatehouse.yml`.",
    );
  });

  it("tells more about one command, however it is named", () => {
    const more = [
      "`/vm show &lt;vm&gt;`",
      "Show a VM, with buttons for what you can do.",
      "• `vm` the VM to show",
      "Also: /vm status, /vm describe, /vm info, /vm get",
      "For example: `/vm show web-1`",
    ].join("\n");
    expect(helpOn("vm show")).toBe(more);
    expect(helpOn(" /VM Show ")).toBe(more);
    expect(helpOn("vm reboot")).toBe(helpOn("vm restart"));
    expect(helpOn("vm restart")).toContain("Also: /vm reboot");
    expect(helpOn("vm restart")).toContain("It interrupts what runs there.");
    expect(helpOn("vm restore")).toContain("asks you to type the name, and others to approve");
    expect(helpOn("vm list")).toContain("• `--status` (optional) only VMs in this status");
    expect(helpOn("project create")).toContain("• `--type` one of TEE_VM, GIT_DEPLOY, CONTAINER");
    for (const { name } of commands) expect(complaintsOf(renderHelp(commands, name))).toEqual([]);
  });

  it("tells about one slash command", () => {
    const text = shownText(renderHelp(commands, "project"));
    expect(text).toContain("`/project list");
    expect(text).not.toContain("`/vm list");
  });

  it("shows every command that begins with a word, with or without its slash command", () => {
    const pins = shownText(renderHelp(commands, "pins"));
    for (const one of ["pins`", "pins propose &lt;vm&gt;", "pins drop &lt;vm&gt;"])
      expect(pins).toContain(`\`/gatehouse ${one}`);
    expect(pins).not.toContain("/gatehouse help`");
    expect(helpOn("restart")).toBe(helpOn("vm restart"));
    expect(helpOn("list")).toMatch(/`\/vm list [^]*`\/project list /);
    expect(helpOn("gatehouse requests")).toContain("Also: /gatehouse requests");
  });

  it("explains what somebody may not run, and whom to ask, only when asked for it", () => {
    const mine = commands.filter((one) => one.kind === "read" && one.class === "read");
    const withheld = commands
      .filter((one) => !mine.includes(one))
      .map((command) => ({
        command,
        who: md`Only ${"@oncall"} can.`,
        rule: md`The rule is here.`,
        isForEmergencies: command.name === "vm restore",
      }));
    const help = (topic: string) =>
      shownText(renderHelp(mine, topic, undefined, md`🚨 Now.`, withheld)).replaceAll("\u2060", "");
    for (const topic of ["vm restart", "vm reboot", "restart"])
      expect(help(topic)).toBe(
        [
          "Only @oncall can.",
          "`/vm restart &lt;vm…&gt;`",
          "Restart a running VM. It interrupts what runs there.",
          "• `vms` the VMs to restart",
          "Also: /vm reboot",
          "For example: `/vm restart web-1`",
          "The rule is here.",
        ].join("\n"),
      );
    expect(help("vm restore")).toMatch(/^Only @oncall can\.\n[^]*🚨 Now\.\nThe rule is here\.$/);
    const none = shownText(renderHelp([], "project", undefined, undefined, withheld)).replaceAll(
      "\u2060",
      "",
    );
    expect(none).toMatch(/^What others can run\n[^]*project create [^]*\. Only @oncall can\./);
    expect(help("vm restrat")).toContain("Did you mean `/gatehouse help vm restart`?");
    for (const topic of ["", "all", "vm"]) expect(help(topic)).not.toContain("/vm restart");
  });

  it("says what was probably meant, and shows what was typed inert", () => {
    expect(shownText(renderHelp(commands, "vm restrat"))).toBe(
      "There is no help on `vm restrat`. Did you mean `/gatehouse help vm restart`?",
    );
    const odd = renderHelp(commands, "<!channel> `x`");
    expect(shownText(odd)).toBe(
      "There is no help on `&lt;!channel&gt; ˋxˋ`. `/gatehouse help` lists what you can run.",
    );
    expect(odd.text).not.toContain("<!");
  });

  it("fits into Slack's limits with ten times the commands", () => {
    const many = Array.from({ length: 10 }, (_, index) =>
      commands.map((one) => ({ ...one, summary: `${one.summary} ${index}`.repeat(3) })),
    ).flat();
    const help = renderHelp(many, "all");
    expect(complaintsOf(help)).toEqual([]);
    expect(shownText(help)).not.toContain("more not shown");
  });
});
