import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { commands } from "../../src/features/index.ts";
import { runCompletion } from "../../src/cli/completion.ts";
import { root } from "../structure/sources.ts";
import { programOf } from "../support/programs.ts";
import { startWorld } from "../support/start-world.ts";
import { deployJob, deployPolicy, apiEnv, tokens } from "../features/proposals/deploy-job.ts";
import { until } from "../support/until.ts";

/** What the program says for these words where no API answers. */
async function completes(...words: string[]): Promise<string> {
  const said: string[] = [];
  await runCompletion(words, {
    api: () => ({ url: "http://127.0.0.1:1", token: tokens[0] }),
    write: (text) => void said.push(text),
    commands,
    main: "/opt/o'clock/gatehouse.mjs",
    programs: ["doctor", "propose"],
  });
  return said.join("");
}

function folder() {
  const path = mkdtempSync(join(tmpdir(), "gatehouse-completion-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

describe("completion", () => {
  it("is a function for bash and zsh that asks Gatehouse what may follow", async () => {
    for (const shell of ["bash", "zsh"])
      expect(await completes(shell)).toMatch(
        /^gatehouse\(\) \{ node '\/opt\/o'\\''clock\/gatehouse\.mjs' "\$@"; \}\n_gatehouse\(\) \{/,
      );
    expect(await completes("fish")).toContain("usage: node gatehouse.mjs completion");
    expect(await completes("words")).toBe("doctor\npropose\n");
    expect(await completes("words", "propose")).toBe("vm\nproject\ngatehouse\n");
    expect((await completes("words", "propose", "vm")).split("\n")).toContain("snapshot");
    // No API: the flags alone
    expect(await completes("words", "propose", "vm", "restart")).toBe("--reason\n--wait\n--key\n");
    expect(await completes("words", "doctor")).toBe("");
  });

  const zsh = programOf("zsh");
  const shells = {
    bash: {
      path: "bash",
      tab: (typed: string) =>
        `COMP_WORDS=(gatehouse propose vm restart '${typed}'); COMP_CWORD=4; _gatehouse gatehouse "\${COMP_WORDS[4]}" restart; printf '<%s>' "\${COMPREPLY[@]}"`,
    },
    zsh: {
      path: zsh ?? "",
      // Matches as zsh's own does, outside of a line that is edited
      tab: (typed: string) =>
        `compadd() { shift; printf '<%s>' "\${(@M)@:#$typed*}"; }; typed='${typed}'; words=(gatehouse propose vm restart "$typed"); CURRENT=5; _gatehouse`,
    },
  };

  /** What Tab offers behind `gatehouse propose vm restart`, with the script of that program. */
  async function offered(shell: keyof typeof shells, main: string, typed: string, env = {}) {
    const { path, tab } = shells[shell];
    let script = "";
    const write = (text: string) => void (script += text);
    const api = () => ({ url: "", token: "" });
    await runCompletion([shell], { commands, api, write, main, programs: [] });
    using here = folder();
    const lines = `compdef() { :; }\n${script}${tab(typed)}`;
    const how = { cwd: here.path, env: { ...process.env, ...env } };
    const { stdout } = await promisify(execFile)(path, ["-c", lines], how);
    return { offers: stdout, made: readdirSync(here.path) };
  }

  const evil = [
    "x$(touch${IFS}made)",
    "`touch made`",
    "x;touch made",
    "../*",
    "--reason=now",
    "a b",
  ];

  describe.each([["bash"], ["zsh"]] as const)("in %s", (shell) => {
    it.skipIf(shells[shell].path === "")(
      "offers the VMs whose names are plain, and runs nothing that a name says",
      async () => {
        await using world = await startWorld({ env: apiEnv, policy: deployPolicy() });
        const vms = ["vm-payments-web-2", "vm-payments-db-1"];
        for (const [at, vm] of vms.entries())
          world.compute.edit.renameVm({ vm, name: evil[at] ?? "" });
        const url = deployJob(world).url();
        const headers = { authorization: `Bearer ${tokens[0]}` };
        const names = async () => (await fetch(`${url}/v1/vms`, { headers })).text();
        await until(names).toContain("`touch made`");
        const env = { GATEHOUSE_URL: url, GATEHOUSE_TOKEN: tokens[0] };
        const main = join(root, "gatehouse.mjs");
        expect(await offered(shell, main, "", env)).toEqual({
          offers: "<web-1><--reason><--wait><--key>",
          made: [],
        });
        expect((await offered(shell, main, "we", env)).offers).toBe("<web-1>");
      },
    );

    it.skipIf(shells[shell].path === "")(
      "takes each line as it is, whatever answers: it is neither run, split, nor matched with files",
      async () => {
        using program = folder();
        const main = join(program.path, "main.mjs");
        writeFileSync(main, `console.log(${JSON.stringify(evil.join("\n"))});`);
        const offers = evil.map((one) => `<${one}>`).join("");
        expect(await offered(shell, main, "")).toEqual({ offers, made: [] });
        expect((await offered(shell, main, "x$(")).offers).toBe(`<${evil[0]}>`);
      },
    );
  });
});
