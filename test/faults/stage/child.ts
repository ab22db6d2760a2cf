import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import { compileCache } from "../../support/compile-cache.ts";

/** A process of ours: speaks JSON lines on its stdout, hears them on its stdin, ends with us. */
export interface Child extends AsyncDisposable {
  readonly pid: number;
  /** What it said first. */
  readonly ready: Readonly<Record<string, unknown>>;
  readonly isGone: () => boolean;
  /** Resolves with its exit code, or the signal that ended it. */
  readonly exited: Promise<number | string>;
  /** Everything it wrote to stderr, the last part of it. */
  complaints(): string;
  say(line: object): void;
  signal(signal: NodeJS.Signals): void;
  /** SIGTERM, and SIGKILL when that takes too long; resolves when it is gone. */
  stop(): Promise<void>;
}

const here = import.meta.dirname;
export const root = path.resolve(here, "../../..");

/** Starts `script` (relative to the project) and resolves with its first line. `more`: environment beside this process's. */
export async function startChild(
  script: string,
  args: readonly string[],
  onLine: (line: Record<string, unknown>) => void = () => undefined,
  more: Record<string, string> = {},
): Promise<Child> {
  const { NODE_OPTIONS: _theirs, ...env } = process.env;
  const child = spawn(
    process.execPath,
    ["--import", path.join(here, "end-with-parent.ts"), path.join(root, script), ...args],
    {
      cwd: root,
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...env, ...more, ...compileCache },
    },
  );
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(-8000);
  });
  child.stdin.on("error", () => undefined); // it may be gone while we speak
  const exited = once(child, "exit").then(([code, signal]) => (code ?? signal) as number | string);
  const { promise: ready, resolve, reject } = Promise.withResolvers<Record<string, unknown>>();
  let isReady = false;
  createInterface({ input: child.stdout }).on("line", (text) => {
    const line = parsed(text);
    if (line === undefined) return;
    if (isReady) return onLine(line);
    isReady = true;
    resolve(line);
  });
  void exited.then((how) =>
    reject(new Error(`${script} ended (${how}) before it was ready:\n${stderr}`)),
  );
  const isGone = () => child.exitCode !== null || child.signalCode !== null;
  const stop = async () => {
    if (isGone()) return;
    child.kill("SIGCONT");
    child.kill("SIGTERM");
    const late = setTimeout(() => child.kill("SIGKILL"), 11_000); // a process ends by itself within 10 s
    await exited;
    clearTimeout(late);
  };
  return {
    pid: child.pid ?? 0,
    ready: await ready,
    isGone,
    exited,
    complaints: () => stderr,
    say: (line) => void child.stdin.write(`${JSON.stringify(line)}\n`),
    signal: (signal) => void child.kill(signal),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
