import { spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type RedisServer, startRedis } from "./ensure-redis.ts";

/** A process that can be killed for real, and started again where it was. */
export interface Killable {
  isUp(): boolean;
  /** SIGKILL. */
  kill(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

/** The same port and the same data after a kill. */
export function killableRedis(first: RedisServer): Killable {
  let now: RedisServer | undefined = first;
  return {
    isUp: () => now !== undefined,
    kill: async () => {
      const server = now;
      now = undefined;
      await server?.kill();
    },
    start: async () => {
      now ??= await startRedis({ dir: first.dir, port: first.port });
    },
    close: async () => {
      await now?.stop();
      await rm(first.dir, { recursive: true, force: true });
    },
  };
}

/**
 * A Node.js program as a process of its own, with this environment beside ours. It is up when `isReady` says so of one of its lines.
 * Its input ends with us, whatever ended us: the program should end then.
 */
export async function startKillable(
  program: URL,
  options: {
    env: Readonly<Record<string, string>>;
    isReady: (line: string) => boolean;
    onLine: (line: string) => void;
  },
): Promise<Killable> {
  let now: ReturnType<typeof run> | undefined;
  const run = () => {
    const child = spawn(process.execPath, [fileURLToPath(program)], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, ...options.env },
    });
    child.stdin.on("error", () => undefined); // it may be gone when we let go of it
    const gone = once(child, "exit");
    const { promise: ready, resolve, reject } = Promise.withResolvers<void>();
    createInterface({ input: child.stdout }).on("line", (line) => {
      options.onLine(line);
      if (options.isReady(line)) resolve();
    });
    void gone.then(() => {
      if (now?.child === child) now = undefined;
      reject(new Error(`${path.basename(program.pathname)} ended before it was ready`));
    });
    return { child, gone, ready };
  };
  const end = async (signal: "SIGKILL" | "SIGTERM") => {
    const process = now;
    process?.child.kill(signal);
    await process?.gone;
  };
  const start = async () => {
    now ??= run();
    await now.ready;
  };
  await start();
  return {
    isUp: () => now !== undefined,
    kill: () => end("SIGKILL"),
    start,
    close: () => end("SIGTERM"),
  };
}
