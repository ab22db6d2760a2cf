import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { listen } from "../../sandbox/listen.ts";
import { runCompletion } from "../../src/cli/completion.ts";
import { root } from "../structure/sources.ts";
import { compileCache } from "../support/compile-cache.ts";
import { programOf } from "../support/programs.ts";
import { longDeadlines } from "../support/start-program.ts";
import { evilNames } from "./evil-names.ts";

function folder() {
  const path = mkdtempSync(join(tmpdir(), "gatehouse-completion-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

describe("completion", () => {
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
    await runCompletion([shell], { api, write, main, programs: [] });
    using here = folder();
    const lines = `compdef() { :; }\n${script}${tab(typed)}`;
    const how = { cwd: here.path, env: { ...process.env, ...env } };
    const { stdout } = await promisify(execFile)(path, ["-c", lines], how);
    return { offers: stdout, made: readdirSync(here.path) };
  }

  it("asks Gatehouse itself, with the words typed so far and the variables of the shell", async () => {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      asked.push(`${request.url} ${request.headers.authorization}`);
      response.end('{"vms":[{"name":"web-1"}]}');
    });
    const { url, close } = await listen(server, 0);
    onTestFinished(close);
    const env = {
      ...compileCache,
      NODE_OPTIONS: longDeadlines(),
      GATEHOUSE_URL: url,
      GATEHOUSE_TOKEN: "fake-token",
    };
    expect(await offered("bash", join(root, "gatehouse.mjs"), "", env)).toEqual({
      offers: "<web-1><--reason><--wait><--key>",
      made: [],
    });
    expect(asked).toEqual(["/v1/vms Bearer fake-token"]);
  });

  describe.each([["bash"], ["zsh"]] as const)("in %s", (shell) => {
    it.skipIf(shells[shell].path === "")(
      "takes each line as it is, whatever answers: it is neither run, split, nor matched with files",
      async () => {
        using program = folder();
        const main = join(program.path, "main.mjs");
        writeFileSync(main, `console.log(${JSON.stringify(evilNames.join("\n"))});`);
        const offers = evilNames.map((one) => `<${one}>`).join("");
        expect(await offered(shell, main, "")).toEqual({ offers, made: [] });
        expect((await offered(shell, main, "x$(")).offers).toBe(`<${evilNames[0]}>`);
      },
    );
  });
});
