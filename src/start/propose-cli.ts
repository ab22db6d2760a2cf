import { hash, randomBytes, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { commands } from "../commands/index.ts";
import { type ApiAccess, configExitCode } from "../config/config.ts";
import { parseDuration } from "../config/durations.ts";
import { UserError, codeOf, messageOf, rootCause } from "../errors.ts";
import { duration, plain } from "../messages/message.ts";
import { isChange, verbsOf } from "../registry/define.ts";
import { rootsOf } from "../registry/help.ts";
import { stateWords } from "../requests/journal/stage.ts";
import { listAt, textAt } from "../slack/json.ts";
import { parseJson } from "../text/parse-json.ts";
import { UsageError, runProgram, usageExitCode } from "../text/terminal.ts";
import { signalExitCodes } from "./node-process.ts";

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
  8   still open when --wait was over
  64  the words mean nothing: nothing was sent
  78  GATEHOUSE_URL, GATEHOUSE_TOKEN, or CA_FILE is wrong: nothing was sent
  130 ended by Ctrl-C, 143 by SIGTERM: what was proposed stands`;

/** How `propose` ends. The usage above and docs/automation.md list the same codes. */
export const proposeExitCodes = {
  done: 0,
  refused: 1,
  turnedDown: 4,
  expired: 5,
  failed: 6,
  unknown: 7,
  open: 8,
  usage: usageExitCode,
  configuration: configExitCode,
  ...signalExitCodes,
} as const;

export const tokenUsage = `usage: node gatehouse.mjs token
  prints a new token for a service, and its hash for \`tokens\` in gatehouse.yml`;

export const completionUsage = `usage: node gatehouse.mjs completion bash|zsh
  prints a function "gatehouse" with its completion, for eval "$(node gatehouse.mjs completion bash)"; where GATEHOUSE_URL and
  GATEHOUSE_TOKEN are set, it knows the VMs that the service sees`;

interface Terminal {
  /** Where the API is. Throws ConfigError. */
  api: () => ApiAccess;
  /** The variable or the file that its token comes from. */
  tokenSource?: string;
  write: (text: string) => void;
  /** For what isn't a state: standard error, where a terminal has one. */
  complain?: (text: string) => void;
  /** Takes what to say when a signal ends the process. */
  onSignal?: (tell: () => string) => void;
}

const exitCodes: ReadonlyMap<string, number> = new Map([
  ["done", proposeExitCodes.done],
  ["denied", proposeExitCodes.turnedDown],
  ["dismissed", proposeExitCodes.turnedDown],
  ["cancelled", proposeExitCodes.turnedDown],
  ["expired", proposeExitCodes.expired],
  ["failed", proposeExitCodes.failed],
  ["rejected", proposeExitCodes.failed],
  ["not-applied", proposeExitCodes.failed],
  ["unknown", proposeExitCodes.unknown],
]);

const word = { type: "string" } as const;
/** As long as the API lets a call wait. */
const oneWaitMs = 30_000;

/** Proposes a change, and follows it until it has ended. Resolves with the exit code. */
export function runPropose(
  words: readonly string[],
  { api, tokenSource = "GATEHOUSE_TOKEN", write, complain = write, onSignal }: Terminal,
): Promise<number> {
  const options = { reason: word, wait: word, key: word };
  const failed: number = proposeExitCodes.refused;
  const program = { usage: proposeUsage, options, failed, write };
  return runProgram(words, program, async ({ values, positionals }) => {
    const { reason = "", wait, key = randomUUID() } = values;
    const command = positionals.join(" ").trim();
    const waitMs = wait === undefined ? 0 : parseDuration(wait);
    if (command === "")
      throw new UsageError('The command is missing: name the change, as in "vm restart web-2".');
    if (reason.trim() === "")
      throw new UsageError("--reason is missing: whoever runs the proposal reads why.");
    if (waitMs === undefined) throw new UsageError("--wait must be like 30s, 10m, or 1h.");
    if (!/^[\x21-\x7e]{1,200}$/.test(key))
      throw new UsageError("--key must be one word of at most 200 ASCII characters.");
    const progress: Progress = { key, outcome: "unsent" };
    onSignal?.(() => `${whatStands(progress)}\n`);
    const at = api();
    const until = performance.now() + (waitMs || oneWaitMs);
    const leftMs = () => Math.max(0, Math.ceil(until - performance.now()));
    const caller = { at, tokenSource, leftMs, progress, complain };
    try {
      const body = JSON.stringify({ command, reason });
      const headers = { "content-type": "application/json", "idempotency-key": key };
      let now = await call(caller, "/v1/proposals", { method: "POST", headers, body });
      progress.made = now;
      write(lineOf(now));
      if (waitMs === 0) return proposeExitCodes.done;
      // It stands, though the API is away: that isn't code 1
      program.failed = proposeExitCodes.open;
      while (!now.final && now.state !== "unknown") {
        if (leftMs() === 0) {
          complain(`${whatStands(progress)}\n`);
          return proposeExitCodes.open;
        }
        const seconds = Math.ceil(Math.min(leftMs(), oneWaitMs) / 1000);
        const path = ["/v1/requests/", now.id, "?wait=", seconds, "&after=", now.state].join("");
        const askedAt = performance.now();
        const next = await call(caller, path);
        // A proxy may answer at once although it was asked to wait
        const isHasty = next.state === now.state && performance.now() - askedAt < pauseMs;
        if (isHasty) await sleep(Math.min(leftMs(), pauseMs));
        if (next.state !== now.state) write(lineOf(next));
        progress.made = now = next;
      }
      return exitCodes.get(now.state) ?? proposeExitCodes.open;
    } catch (error) {
      if (!(error instanceof UserError) || (!progress.made && progress.outcome !== "unclear"))
        throw error;
      throw new UserError(error.message, `${error.hint ?? ""}\n${whatStands(progress)}`.trim());
    }
  });
}

/** How far a run has come. */
interface Progress {
  key: string;
  /** Of the calls that propose: none left, each was refused, or one is on its way or has no answer that tells. */
  outcome: "unsent" | "refused" | "unclear";
  /** As last heard. */
  made?: z.output<typeof answered>;
}

/** What becomes of the proposal when nobody waits here any more, in one line. */
function whatStands({ key, outcome, made }: Progress): string {
  if (!made && outcome === "unclear")
    return `The proposal may have been made. The same command with --key ${key} asks again without making a second.`;
  if (!made) return outcome === "unsent" ? "Nothing was sent." : "Nothing was proposed.";
  const { id, state, final, expiresAt } = made;
  if (final) return onOneLine(`${id} has ended: ${state}.`);
  const stays = state === "open" ? `stays open in Slack until ${expiresAt}` : "goes on in Slack";
  return onOneLine(
    `${id} ${stays}; nothing was taken back. The same command with --key ${key} follows it.`,
  );
}

/** On one line, whatever others have written into it: a log takes what begins a line for a message of its own. */
function lineOf({ id, state, by, why, result, expiresAt }: z.output<typeof answered>): string {
  const said =
    state === "open"
      ? `open: ${id} waits for someone to run it, until ${expiresAt}`
      : `${state}: ${result ?? why ?? stateWords(state)}${by ? ` (${by})` : ""}`;
  return `${onOneLine(said)}\n`;
}

/** Runners of pipelines obey `::command` at the beginning of a line, and `##[command]` anywhere in it. */
const onOneLine = (text: string) =>
  plain(text, 1_000)
    .replace(/^\s*::/, ": :")
    .replaceAll(/##(?=\w*\[)/g, "# #");

/** What the API answers of a proposal. Anything else is another program's, though it may say 200, too. */
const answered = z.object({
  id: z.string().regex(/^p-\w{1,40}$/),
  state: z.string().regex(/^[a-z-]{1,30}$/),
  final: z.boolean(),
  command: z.string(),
  reason: z.string(),
  expiresAt: z.iso.datetime(),
  request: z.string().optional(),
  by: z.string().optional(),
  why: z.string().optional(),
  result: z.string().optional(),
});

const mostTries = 15;
/** Between two tries; beyond its time, too, for an answer that is on its way. */
const pauseMs = 2_000;

interface ApiCaller {
  at: ApiAccess;
  tokenSource: string;
  /** Until nothing is tried any more (ms). */
  leftMs: () => number;
  progress: Progress;
  complain: (text: string) => void;
}

/** Repeated where the connection is lost or the API is busy: the key makes it the same proposal. Throws UserError. */
async function call(by: ApiCaller, path: string, sent?: RequestInit) {
  const { at, tokenSource, leftMs, complain } = by;
  for (let tries = 1; ; tries++) {
    const { answer, body, why } = await (sent
      ? send(by, path, sent)
      : callOnce(at, path, leftMs()));
    const state = answer?.ok ? answered.safeParse(body).data : undefined;
    if (state) return state;
    if (answer && answer.status >= 300 && answer.status < 400)
      throw new UserError(
        `${at.url} answers with a redirect (${answer.status}), which isn't followed: it could lead the token elsewhere.`,
        "Set GATEHOUSE_URL to the address of the door itself.",
      );
    const toldMs = Math.max(0, Number(answer?.headers.get("retry-after")) * 1000 || 0);
    // 429 without a time isn't about pace: too many proposals are open
    const isBusy = !answer || answer.status >= 500 || (answer.status === 429 && toldMs > 0);
    const title = answer?.ok ? "" : onOneLine(textAt(body, "title"));
    if (!isBusy || leftMs() <= toldMs || (sent && tries === mostTries)) {
      if (answer?.status === 401 && title !== "")
        throw new UserError(
          `${title}: no service in gatehouse.yml has the token in ${tokenSource}.`,
          "`services.<name>.tokens` has the hash of each; `node gatehouse.mjs token` makes a new one.",
        );
      if (title) throw new UserError(title, onOneLine(textAt(body, "detail")));
      throw new UserError(`No door answers at ${at.url}: ${why}.`, "Check GATEHOUSE_URL.");
    }
    const what = title || `No door answers at ${at.url}: ${why}.`;
    if (tries === 1) complain(`${what} Trying again for up to ${secondsOf(leftMs())}.\n`);
    await sleep(Math.min(leftMs(), toldMs || pauseMs));
  }
}

/** A call that proposes, and what it means for the outcome. */
async function send(
  { at, leftMs, progress, complain }: ApiCaller,
  path: string,
  sent: RequestInit,
) {
  const before = progress.outcome;
  progress.outcome = "unclear";
  const tellSlow = () =>
    complain(`No answer from ${at.url} yet. Waiting up to ${secondsOf(leftMs())}.\n`);
  const slow = setTimeout(tellSlow, slowMs);
  const ended = await callOnce(at, path, leftMs(), sent);
  clearTimeout(slow);
  const isRefused = ended.answer && ended.answer.status < 500;
  if (before !== "unclear" && isRefused) progress.outcome = "refused";
  else if (ended.isUnsent) progress.outcome = before;
  return ended;
}

const secondsOf = (ms: number) => duration(Math.ceil(ms / 1000) * 1000);

/** A call that proposes is answered sooner, unless something is wrong. */
const slowMs = 3_000;

/** No connection was made, so nothing was sent over one. */
const unsent =
  /^(ENOTFOUND|EAI_\w+|ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|\w*CERT\w*|UNABLE_TO_\w+|ERR_TLS_\w+)$/;

async function callOnce(to: ApiAccess, path: string, forMs: number, sent?: RequestInit) {
  const headers = new Headers(sent?.headers);
  headers.set("authorization", `Bearer ${to.token}`);
  const signal = AbortSignal.timeout(Math.min(forMs, oneWaitMs) + pauseMs);
  try {
    // Behind its path: a proxy may have the API below one
    const address = to.url.replace(/\/*$/, path);
    const answer = await fetch(address, { ...sent, headers, signal, redirect: "manual" });
    const body = parseJson(await textOf(answer));
    return { answer, body, why: `what is there answered ${answer.status}` };
  } catch (error) {
    const cause = rootCause(error);
    // A name may have several addresses
    const first = cause instanceof AggregateError ? cause.errors[0] : cause;
    return { why: onOneLine(messageOf(first)), isUnsent: unsent.test(codeOf(first)) };
  }
}

/** More is no answer of the API (bytes). */
const mostBytes = 4 * 1024 * 1024;

/** Empty where the body is larger than any that the API sends. */
async function textOf(answer: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of answer.body ?? []) {
    size += chunk.length;
    if (size > mostBytes) return "";
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** A new token and its hash. */
export function runToken(words: readonly string[], write: Terminal["write"]): Promise<number> {
  return runProgram(words, { usage: tokenUsage, options: {}, failed: 1, write }, () => {
    const token = randomBytes(32).toString("base64url");
    write(`token: ${token}\nin gatehouse.yml: "sha256:${hash("sha256", token)}"\n`);
    return 0;
  });
}

/** Asks Gatehouse itself what may come next, line by line: `compgen -W` would run what a name says. */
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

/** The script of a shell; and for that script, by \`words\`, what may follow on the words typed so far. */
export function runCompletion(
  words: readonly string[],
  { api, write, main, programs }: Terminal & { main: string; programs: readonly string[] },
): Promise<number> {
  const program = { usage: completionUsage, options: {}, failed: 1, write };
  const [shell = "", ...typed] = words;
  return runProgram(shell === "words" ? [] : words, program, async () => {
    const script = Object.hasOwn(completions, shell) ? completions[shell] : undefined;
    if (shell === "words") write((await next()).map((one) => `${one}\n`).join(""));
    else if (script === undefined) throw new UsageError();
    else write(`gatehouse() { node '${main.replaceAll("'", `'\\''`)}' "$@"; }\n${script}`);
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
    // A completion doesn't complain: none if the API can't be asked
    const vms = root === "vm" && typed.length === 3 ? await vmNames().catch(() => []) : [];
    return [...vms, "--reason", "--wait", "--key"];
  }

  /** Those a shell takes as they are. */
  async function vmNames(): Promise<readonly string[]> {
    const { body } = await callOnce(api(), "/v1/vms", 0);
    const names = listAt(body, "vms").map((vm) => textAt(vm, "name"));
    return names.filter((name) => /^\w[\w./-]*$/.test(name));
  }
}
