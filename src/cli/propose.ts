import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { type ApiAccess } from "../config/api-access.ts";
import { configExitCode } from "../config/config-error.ts";
import { parseDuration } from "../config/durations.ts";
import { UserError } from "../errors.ts";
import { duration } from "../messages/markdown.ts";
import { textAt } from "../slack/json.ts";
import { UsageError, runProgram, usageExitCode } from "../text/terminal.ts";
import { signalExitCodes } from "../operate/node-process.ts";
import { callOnce, onOneLine, oneWaitMs } from "./call-api.ts";
import { stateWords } from "../core/request/stage.ts";

export const proposeUsage = `usage: node gatehouse.mjs propose "<command>" --reason <why> [--wait <time>] [--key <key>]
  proposes a change to people in Slack, as in propose "vm snapshot db-1 before-deploy" --reason "release 42"
  --wait <time>   prints each state on a line, for as long as 10m or until it has ended
  --key <key>     the same key is the same proposal; by default each run has its own
  GATEHOUSE_URL is the address of the API, GATEHOUSE_TOKEN (or GATEHOUSE_TOKEN_FILE) the token of a service;
  HTTPS_PROXY, HTTP_PROXY, and NO_PROXY count as in other programs

exit codes
  0   done; without --wait: proposed
  1   refused, or the API can't be reached
  4   denied, dismissed, or canceled
  5   expired
  6   failed, rejected, or not applied
  7   outcome unknown: a person must check
  8   still open when --wait was over
  64  the words mean nothing: nothing was sent
  78  GATEHOUSE_URL, GATEHOUSE_TOKEN, CA_FILE, or a proxy is wrong: nothing was sent
  130 ended by Ctrl-C, 143 by SIGTERM: what was proposed stands`;

/** The exit codes of `propose`. The usage above and docs/automation.md list the same codes. */
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

interface Terminal {
  /** Returns the address of the API. Throws ConfigError. */
  api: () => ApiAccess | Promise<ApiAccess>;
  /** The variable or the file from which its token comes. */
  tokenSource?: string;
  write: (text: string) => void;
  /** Gets messages that aren't a state. Standard error, if the terminal has one. */
  complain?: (text: string) => void;
  /** Sets a function that returns what is printed when a signal ends the process. */
  onSignal?: (tell: () => string) => void;
  pace?: ProposePace | undefined;
}

/** How long `propose` waits before it does something again, or says something. */
export interface ProposePace {
  /** The time between two tries (ms). */
  pauseMs: number;
  /** A call that proposes is answered sooner than this, unless something is wrong (ms). */
  slowMs: number;
}

const usualPace: ProposePace = { pauseMs: 2_000, slowMs: 3_000 };

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

/** Proposes a change, and follows it until it has ended. Resolves with the exit code. */
export function runPropose(
  words: readonly string[],
  {
    api,
    tokenSource = "GATEHOUSE_TOKEN",
    write,
    complain = write,
    onSignal,
    pace = usualPace,
  }: Terminal,
): Promise<number> {
  const options = { reason: word, wait: word, key: word };
  const failed: number = proposeExitCodes.refused;
  const program = { usage: proposeUsage, options, failed, complain };
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
    const at = await api();
    const until = performance.now() + (waitMs || oneWaitMs);
    const leftMs = () => Math.max(0, Math.ceil(until - performance.now()));
    const caller = { at, tokenSource, leftMs, progress, complain, pace };
    try {
      const body = JSON.stringify({ command, reason });
      const headers = { "content-type": "application/json", "idempotency-key": key };
      let now = await call(caller, "/v1/proposals", { method: "POST", headers, body });
      progress.made = now;
      write(lineOf(now));
      if (waitMs === 0) return proposeExitCodes.done;
      // From here on, exit code 1 would be wrong: the proposal exists even if the API is down.
      program.failed = proposeExitCodes.open;
      while (!now.final && now.state !== "unknown") {
        if (leftMs() === 0) {
          const still = now.state === "open" ? "Still open" : "Not ended";
          complain(`${still} after ${duration(waitMs)}. ${whatStands(progress)}\n`);
          return proposeExitCodes.open;
        }
        const seconds = Math.ceil(Math.min(leftMs(), oneWaitMs) / 1000);
        const path = ["/v1/requests/", now.id, "?wait=", seconds, "&after=", now.state].join("");
        const askedAt = performance.now();
        const next = await call(caller, path);
        // A proxy may answer at once although it was asked to wait.
        const isHasty = next.state === now.state && performance.now() - askedAt < pace.pauseMs;
        if (isHasty) await sleep(Math.min(leftMs(), pace.pauseMs));
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
  /**
   * The outcome of the calls that propose: `unsent` means that none was sent, `refused` that each
   * was refused, and `unclear` that one is on its way or had no clear answer.
   */
  outcome: "unsent" | "refused" | "unclear";
  /** The proposal as it was last returned. */
  made?: z.output<typeof answered>;
}

/** Says in one line what becomes of the proposal when this program stops waiting. */
function whatStands({ key, outcome, made }: Progress): string {
  if (!made && outcome === "unclear")
    return `The proposal may have been made. The same command with --key ${key} asks again without making a second.`;
  if (!made) return outcome === "unsent" ? "Nothing was sent." : "Nothing was proposed.";
  const { id, state, final, expiresAt, card } = made;
  if (final) return onOneLine(`${id} has ended: ${state}.`);
  const stays = state === "open" ? `stays open in Slack until ${expiresAt}` : "goes on in Slack";
  const where = card === undefined ? "" : ` Its card: ${card}`;
  return onOneLine(
    `${id} ${stays}; nothing was taken back. The same command with --key ${key} follows it.${where}`,
  );
}

/**
 * A state on one line, whatever others have written into it, because a log treats certain
 * beginnings of a line as commands.
 */
function lineOf({
  id,
  state,
  by: actor,
  why,
  result,
  expiresAt,
}: z.output<typeof answered>): string {
  const sentence =
    state === "open"
      ? `open: ${id} waits for someone to run it, until ${expiresAt}`
      : `${state}: ${result ?? why ?? stateWords(state)}${actor ? ` (${actor})` : ""}`;
  return `${onOneLine(sentence)}\n`;
}

/**
 * The API's answer about a proposal. Anything else comes from another program, even with status
 * 200.
 */
const answered = z.object({
  id: z.string().regex(/^p-\w{1,40}$/),
  state: z.string().regex(/^[a-z-]{1,30}$/),
  final: z.boolean(),
  command: z.string(),
  reason: z.string(),
  expiresAt: z.iso.datetime(),
  card: z.url({ protocol: /^https$/ }).optional(),
  request: z.string().optional(),
  by: z.string().optional(),
  why: z.string().optional(),
  result: z.string().optional(),
});

const mostTries = 15;

interface ApiCaller {
  at: ApiAccess;
  tokenSource: string;
  /** The time until nothing is tried any more (ms). */
  leftMs: () => number;
  progress: Progress;
  complain: (text: string) => void;
  pace: ProposePace;
}

/**
 * Makes a call, and repeats it when the connection is lost or the API is busy. The key makes it the
 * same proposal. Throws UserError.
 */
async function call(caller: ApiCaller, path: string, sent?: RequestInit) {
  const { at, tokenSource, leftMs, complain, pace } = caller;
  for (let tries = 1; ; tries++) {
    const { answer, body, why } = await (sent
      ? send(caller, path, sent)
      : callOnce(at, path, leftMs()));
    const state = answer?.ok ? answered.safeParse(body).data : undefined;
    if (state) return state;
    if (answer && answer.status >= 300 && answer.status < 400)
      throw new UserError(
        `${at.url} answers with a redirect (${answer.status}), which isn't followed: it could lead the token elsewhere.`,
        "Set GATEHOUSE_URL to the address of the API itself.",
      );
    const toldMs = Math.max(0, Number(answer?.headers.get("retry-after")) * 1000 || 0);
    // A 429 without a time isn't about the rate: too many proposals are open.
    const isBusy = !answer || answer.status >= 500 || (answer.status === 429 && toldMs > 0);
    const title = answer?.ok ? "" : onOneLine(textAt(body, "title"));
    if (!isBusy || leftMs() <= toldMs || (sent && tries === mostTries)) {
      if (answer?.status === 401 && title !== "")
        throw new UserError(
          `The token in ${tokenSource} isn't one of any service in gatehouse.yml.`,
          "`services.<name>.tokens` has the hash of each; `node gatehouse.mjs token` makes a new one.",
        );
      if (title) throw new UserError(title, onOneLine(textAt(body, "detail")));
      throw new UserError(`No API answers at ${at.url}: ${why}.`, "Check GATEHOUSE_URL.");
    }
    const problem = title || `No API answers at ${at.url}: ${why}.`;
    if (tries === 1) complain(`${problem} Trying again for up to ${secondsOf(leftMs())}.\n`);
    await sleep(Math.min(leftMs(), toldMs || pace.pauseMs));
  }
}

/** Makes a call that proposes, and records what it means for the outcome. */
async function send(
  { at, leftMs, progress, complain, pace }: ApiCaller,
  path: string,
  sent: RequestInit,
) {
  const before = progress.outcome;
  progress.outcome = "unclear";
  const tellSlow = () =>
    complain(`No answer from ${at.url} yet. Waiting up to ${secondsOf(leftMs())}.\n`);
  const slow = setTimeout(tellSlow, pace.slowMs);
  const ended = await callOnce(at, path, leftMs(), sent);
  clearTimeout(slow);
  const isRefused = ended.answer && ended.answer.status < 500;
  if (before !== "unclear" && isRefused) progress.outcome = "refused";
  else if (ended.isUnsent) progress.outcome = before;
  return ended;
}

const secondsOf = (ms: number) => duration(Math.ceil(ms / 1000) * 1000);
