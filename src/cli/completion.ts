import type { ApiAccess } from "../config/api-access.ts";
import { UsageError, runProgram } from "../text/terminal.ts";
import changeWords from "./change-words.json" with { type: "json" };

export const completionUsage = `usage: node gatehouse.mjs completion bash|zsh
  prints a function "gatehouse" with its completion, for eval "$(node gatehouse.mjs completion bash)"; where GATEHOUSE_URL and
  GATEHOUSE_TOKEN are set, it knows the VMs that the service sees`;

/**
 * The verbs of all commands that change something, by the word before them. They are derived from
 * the commands, which would load nearly all of Gatehouse.
 */
const changes: Readonly<Record<string, readonly string[]>> = changeWords;

interface Terminal {
  /**
   * Resolves with the address of the API. Rejects with a ConfigError. Undefined where none is named.
   */
  api: (() => ApiAccess | Promise<ApiAccess>) | undefined;
  write: (text: string) => void;
  /** Gets what isn't a result. */
  complain?: (text: string) => void;
  /** The file that a shell runs as Gatehouse. */
  main: string;
  /** The names of all programs. */
  programs: readonly string[];
}

/**
 * The scripts ask Gatehouse itself what may come next, and read it line by line, because `compgen
 * -W` would run what a name contains.
 */
const completions: Readonly<Record<string, string>> = {
  bash: `_gatehouse() {
  local word; COMPREPLY=()
  while read -r word; do
    [[ $word == "$2"* ]] && COMPREPLY+=("$word")
  done < <(gatehouse completion words "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)
}
complete -F _gatehouse gatehouse
`,
  zsh: `_gatehouse() { compadd -- \${(f)"$(gatehouse completion words \${words[2,CURRENT-1]} 2>/dev/null)"} }
compdef _gatehouse gatehouse
`,
};

/**
 * Prints the script of a shell, or with \`words\`, which that script calls, what may follow the
 * words typed so far.
 */
export function runCompletion(
  words: readonly string[],
  { api, write, complain = write, main, programs }: Terminal,
): Promise<number> {
  const program = { usage: completionUsage, options: {}, failed: 1, complain };
  const [shell = "", ...typed] = words;
  return runProgram(shell === "words" ? [] : words, program, async () => {
    const script = Object.hasOwn(completions, shell) ? completions[shell] : undefined;
    if (shell === "words") write((await next()).map((word) => `${word}\n`).join(""));
    else if (script === undefined) throw new UsageError();
    else write(`gatehouse() { node '${main.replaceAll("'", `'\\''`)}' "$@"; }\n${script}`);
    return 0;
  });

  async function next(): Promise<readonly string[]> {
    const [first, root, verb] = typed;
    if (first === undefined) return programs;
    if (first !== "propose") return [];
    if (root === undefined) return Object.keys(changes);
    if (verb === undefined) return changes[root] ?? [];
    // A completion must not complain, so it offers no VMs when the API can't be asked.
    const vms = root === "vm" && typed.length === 3 ? await vmNames().catch(() => []) : [];
    return [...vms, "--reason", "--wait", "--key"];
  }

  /** The VM names that a shell takes without quotes. */
  async function vmNames(): Promise<readonly string[]> {
    if (api === undefined) return [];
    // Only a Tab for a VM waits for these to be loaded.
    const { callOnce } = await import("./call-api.ts");
    const { listAt, textAt } = await import("../slack/json.ts");
    const { body } = await callOnce(await api(), "/v1/vms", 0);
    const names = listAt(body, "vms").map((vm) => textAt(vm, "name"));
    return names.filter((name) => /^\w[\w./-]*$/.test(name));
  }
}
