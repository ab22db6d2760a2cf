import { hash, randomBytes, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { commands } from "../commands/index.ts";
import { parseDuration } from "../config/durations.ts";
import type { DoorAccess } from "../config/config.ts";
import type { ProposalState } from "../door/serve/propose.ts";
import { messageOf, UserError } from "../errors.ts";
import { isChange, verbsOf } from "../registry/define.ts";
import { rootsOf } from "../registry/help.ts";
import { stateWords } from "../requests/journal/record.ts";
import { listAt, parseJson, textAt } from "../slack/web.ts";
import { runProgram, UsageError } from "../text/terminal.ts";

export const proposeUsage = `usage: node gatehouse.mjs propose "<command>" --reason <why> [--wait <time>] [--key <key>]
  proposes a change to people in Slack, as in propose "vm snapshot db-1 before-deploy" --reason "release 42"
  --wait <time>   prints each state on a line, for as long as 10m or until it has ended
  --key <key>     the same key is the same proposal; by default each run has its own
  GATEHOUSE_URL is the address of the door, GATEHOUSE_TOKEN (or GATEHOUSE_TOKEN_FILE) the token of a service

exit codes
  0   done; without --wait: proposed
  1   refused, or the door can't be reached
  4   denied, dismissed, or canceled
  5   expired
  6   failed, rejected, or not applied
  7   outcome unknown: a person must check
  8   still open when --wait was over`;

export const tokenUsage = `usage: node gatehouse.mjs token
  prints a new token for a service, and its hash for \`tokens\` in gatehouse.yml`;

export const completionUsage = `usage: node gatehouse.mjs completion bash|zsh
  prints a function "gatehouse" with its completion, for eval "$(node gatehouse.mjs completion bash)"; where GATEHOUSE_URL and
  GATEHOUSE_TOKEN are set, it knows the VMs that the service sees`;

interface Terminal {
  /** Where the door is. Throws ConfigError. */
  door: () => DoorAccess;
  write: (text: string) => void;
}

const exitCodes: Readonly<Record<string, number>> = {
  done: 0,
  denied: 4,
  dismissed: 4,
  cancelled: 4,
  expired: 5,
  failed: 6,
  rejected: 6,
  "not-applied": 6,
  unknown: 7,
};
const openExitCode = 8;

const word = { type: "string" } as const;
/** As long as the door lets a call wait, nearly. */
const oneWaitMs = 30_000;

/** Proposes a change, and follows it until it has ended. Resolves with the exit code. */
export function runPropose(words: readonly string[], { door, write }: Terminal): Promise<number> {
  const options = { reason: word, wait: word, key: word };
  const program = { usage: proposeUsage, options, failed: 1, write };
  return runProgram(words, program, async ({ values, positionals }) => {
    const { reason, wait, key = randomUUID() } = values;
    const command = positionals.join(" ");
    const waitMs = wait === undefined ? 0 : parseDuration(wait);
    if (command === "" || reason === undefined) throw new UsageError();
    if (waitMs === undefined) throw new UsageError("--wait must be like 30s, 10m, or 1h.");
    const at = door();
    const until = performance.now() + waitMs;
    const leftMs = () => until - performance.now();
    const body = JSON.stringify({ command, reason });
    const headers = { "content-type": "application/json", "idempotency-key": key };
    let now = await call(at, "/v1/proposals", { method: "POST", headers, body });
    write(lineOf(now));
    while (!now.final && now.state !== "unknown" && leftMs() > 0) {
      const seconds = Math.ceil(Math.min(leftMs(), oneWaitMs) / 1000);
      const asked = new URLSearchParams({ wait: String(seconds), after: now.state });
      const path = ["/v1/requests", now.id].join("/");
      const next = await call(at, `${path}?${asked}`);
      if (next.state !== now.state) write(lineOf(next));
      now = next;
    }
    return waitMs === 0 ? 0 : (exitCodes[now.state] ?? openExitCode);
  });
}

function lineOf({ id, state, by, why, result, expiresAt }: ProposalState): string {
  if (state === "open") return `open: ${id} waits for someone to run it, until ${expiresAt}\n`;
  return `${state}: ${result ?? why ?? stateWords(state)}${by === undefined ? "" : ` (${by})`}\n`;
}

const mostTries = 8;
const longestPauseMs = 10_000;

/** Repeated where the connection is lost or the door is busy: the key makes it the same proposal. Throws UserError. */
async function call(at: DoorAccess, path: string, init: RequestInit = {}): Promise<ProposalState> {
  for (let tries = 1; ; tries++) {
    const { answer, body, why } = await callOnce(at, path, init);
    if (answer?.ok) return body as ProposalState;
    const isBusy = !answer || answer.status >= 500 || answer.status === 429;
    if (!isBusy || tries === mostTries)
      throw new UserError(
        textAt(body, "title") || `The door can't be reached: ${why}.`,
        textAt(body, "detail") || undefined,
      );
    const after = Number(answer?.headers.get("retry-after") ?? 0) * 1000;
    await sleep(after || Math.min(longestPauseMs, 500 * 2 ** tries));
  }
}

async function callOnce({ url, token }: DoorAccess, path: string, init: RequestInit) {
  const headers = new Headers(init.headers);
  headers.set("authorization", `Bearer ${token}`);
  const signal = AbortSignal.timeout(2 * oneWaitMs);
  try {
    const answer = await fetch(new URL(path, url), { ...init, headers, signal });
    const body = parseJson(await answer.text());
    return { answer, body, why: `it answered ${answer.status}` };
  } catch (error) {
    return { answer: undefined, body: undefined, why: messageOf(error) };
  }
}

/** A new token and its hash. */
export function runToken(words: readonly string[], write: Terminal["write"]): Promise<number> {
  return runProgram(words, { usage: tokenUsage, options: {}, failed: 1, write }, () => {
    const token = randomBytes(32).toString("base64url");
    write(`token: ${token}\nin gatehouse.yml: "sha256:${hash("sha256", token)}"\n`);
    return 0;
  });
}

/** Asks Gatehouse itself what may come next. */
const completions: Readonly<Record<string, string>> = {
  bash: `_gatehouse() {
  local known; known=$(gatehouse completion words "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)
  COMPREPLY=($(compgen -W "$known" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _gatehouse gatehouse
`,
  zsh: `_gatehouse() { compadd -- \${(f)"$(gatehouse completion words \${words[2,CURRENT-1]} 2>/dev/null)"} }
compdef _gatehouse gatehouse
`,
};

/** The script of a shell; and for that script, by \`words\`, what may follow on the words typed so far. */
export function runCompletion(
  words: readonly string[],
  { door, write, main, programs }: Terminal & { main: string; programs: readonly string[] },
): Promise<number> {
  const program = { usage: completionUsage, options: {}, failed: 1, write };
  const [shell = "", ...typed] = words;
  if (shell === "words")
    return runProgram([], program, async () => {
      write(`${(await next()).join("\n")}\n`);
      return 0;
    });
  return runProgram(words, program, () => {
    const script = Object.hasOwn(completions, shell) ? completions[shell] : undefined;
    if (script === undefined) throw new UsageError();
    write(`gatehouse() { node '${main.replaceAll("'", `'\\''`)}' "$@"; }\n${script}`);
    return 0;
  });

  async function next(): Promise<readonly string[]> {
    const [first, root, verb] = typed;
    if (first === undefined) return programs;
    if (first !== "propose") return [];
    const changes = commands.filter(isChange);
    if (root === undefined) return rootsOf(changes);
    const ofRoot = changes.filter(({ name }) => name.startsWith(`${root} `));
    if (verb === undefined) return ofRoot.map((command) => verbsOf(command)[0] ?? "");
    const isOnVm = ofRoot.some((command) => command.on === "vm" && verbsOf(command).includes(verb));
    const flags = ["--reason", "--wait", "--key"];
    return isOnVm && typed.length === 3 ? [...(await vmNames()), ...flags] : flags;
  }

  /** None where the door can't be asked: a completion doesn't complain. */
  async function vmNames(): Promise<readonly string[]> {
    try {
      const { body } = await callOnce(door(), "/v1/vms", {});
      return listAt(body, "vms").map((vm) => textAt(vm, "name"));
    } catch {
      return [];
    }
  }
}
