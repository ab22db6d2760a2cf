import { spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { createInterface } from "node:readline";
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

/** A worker with this environment as a process of its own; it ends with us, whatever ended us. */
export async function startKillableWorker(
  env: Readonly<Record<string, string>>,
  onLog: (line: string) => void,
): Promise<Killable> {
  let now: ReturnType<typeof run> | undefined;
  const run = () => {
    const child = spawn(process.execPath, [new URL("demo-worker.ts", import.meta.url).pathname], {
      stdio: ["pipe", "pipe", "inherit"],
      // A directory of its own, as every process of Gatehouse
      env: { ...process.env, ...env, DATA_DIR: `${env["DATA_DIR"]}-worker` },
    });
    child.stdin.on("error", () => undefined); // it may be gone when we let go of it
    const gone = once(child, "exit");
    const { promise: ready, resolve, reject } = Promise.withResolvers<void>();
    createInterface({ input: child.stdout }).on("line", (line) => {
      onLog(`${line}\n`);
      if (line.includes('"process.started"')) resolve();
    });
    void gone.then(() => {
      if (now?.child === child) now = undefined;
      reject(new Error("the worker ended before it was ready"));
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
