import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../structure/sources.ts";
import { compileCache } from "./compile-cache.ts";

/** A program in a process of its own. It is killed when the test lets go of it. */
export interface Program extends AsyncDisposable {
  child: ChildProcess;
  /** Everything it has printed so far, on both streams. */
  output(): string;
  /** Resolves with the first match in its output, and rejects if it ends without one. */
  prints(words: RegExp): Promise<RegExpExecArray>;
  /** Resolves with its exit code; null where a signal ended it. */
  ended: Promise<number | null>;
  /** Sends SIGTERM and resolves with the exit code. */
  stop(): Promise<number | null>;
}

/**
 * The option of Node.js with which a program whose files are in this folder has long deadlines, as this process has: what it gives
 * others a second for takes half a minute. A release may be older than that.
 */
export const longDeadlines = (release = root) => {
  const file = pathToFileURL(path.join(release, "src/deadline.ts")).href;
  const script = `import(${JSON.stringify(file)}).then((it) => it.stretchDeadlines?.(30), () => 0);`;
  return `--import=data:text/javascript,${encodeURIComponent(`await ${script}`)}`;
};

/** Starts Node.js with these arguments. `release`: the folder of the Gatehouse that it runs. */
export function startNode(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  { cwd = root, release = root }: { cwd?: string; release?: string } = {},
): Program {
  const options = `${longDeadlines(release)} ${env["NODE_OPTIONS"] ?? ""}`.trim();
  const child = spawn(process.execPath, args, {
    cwd,
    env: { ...compileCache, PATH: process.env["PATH"] ?? "", ...env, NODE_OPTIONS: options },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const listeners = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      for (const listener of listeners) listener();
    });
  }
  const ended = once(child, "exit").then(([code]) => code as number | null);
  return {
    child,
    ended,
    output: () => output,
    prints: (wanted) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = wanted.exec(output);
          if (found) resolve(found);
        };
        listeners.add(look);
        look();
        void ended.then(() =>
          reject(new Error(`ended without ${String(wanted)}: ${output.slice(-2000)}`)),
        );
      }),
    stop() {
      child.kill("SIGTERM");
      return ended;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** Starts `gatehouse.mjs` with these words, as an operator does; `release` is the folder of another release. */
export const startProgram = (
  words: readonly string[],
  env: NodeJS.ProcessEnv,
  { release = root, ...options }: { release?: string; cwd?: string } = {},
): Program =>
  startNode([path.join(release, "gatehouse.mjs"), ...words], env, { ...options, release });

/** Resolves with the ports that Gatehouse says it listens on once it has started. */
export async function portsOf(program: Program) {
  const [, line = "{}"] = await program.prints(/^(\{.*"event":"process\.started".*\})$/m);
  const { port, opsPort, apiPort } = JSON.parse(line) as Record<string, number>;
  return { port, opsPort, apiPort };
}
