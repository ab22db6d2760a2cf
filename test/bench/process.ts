import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { createInterface } from "node:readline";
import type { World } from "../../sandbox/world.ts";

/** A program in a process of its own, so that what is measured doesn't share a thread with what measures it. */
export interface Program extends AsyncDisposable {
  readonly pid: number;
  /** Resident memory, in MB. */
  rssMb(): number;
  /** CPU time so far, in ms. */
  cpuMs(): number;
}

/** Starts a file with Node; resolves when `isReady` answers for a line of its output. */
export async function startProgram<T>(
  args: readonly string[],
  env: Record<string, string>,
  isReady: (line: string) => T | undefined,
): Promise<Program & { told: T }> {
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env["PATH"] ?? "", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const told = isReady(line);
    if (told !== undefined) resolve(told);
  });
  child.once("exit", (code) => reject(new Error(`${args.join(" ")} ended with ${code}`)));
  const told = await promise;
  return {
    pid: child.pid ?? 0,
    told,
    rssMb: () =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1024,
    cpuMs: () => cpuMsOf(child.pid),
    [Symbol.asyncDispose]: () => end(child),
  };
}

/** User and system time, of which Linux keeps hundredths of a second. */
function cpuMsOf(pid: number | undefined): number {
  const [, fields = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  const [user, system] = fields.split(" ").slice(11, 13);
  return 10 * (Number(user) + Number(system));
}

const bareBolt = "test/bench/bare-bolt.ts";

/** The least that a Slack app can do, run as Gatehouse is; told is its port, where it has one. */
export const startBolt = (env: Record<string, string>) =>
  startProgram(["run.mjs", bareBolt], env, isReady);

/** The same without its types, so that Node needs not strip them. */
export const startPlainBolt = (env: Record<string, string>) =>
  startProgram(
    ["--input-type=module", "--eval", stripTypeScriptTypes(readFileSync(bareBolt, "utf8"))],
    env,
    isReady,
  );

/** What the bare programs print once they run. */
export const isReady = (line: string) =>
  line.startsWith("ready ") ? Number(line.slice(6)) : undefined;

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  // What runs is of no interest any more, and some of it hangs on purpose
  child.kill("SIGKILL");
  await gone;
}

/** Node's, as the image starts it. */
function imageOptions(): readonly string[] {
  return (
    readFileSync("Dockerfile", "utf8")
      .match(/^CMD .*$/m)?.[0]
      .match(/--[\w=-]+/g) ?? []
  );
}

/** Gatehouse as it runs in production, in this world; with a request URL where it is started for HTTP. */
export async function startGatehouse(
  world: World,
  role?: "gateway" | "worker",
): Promise<Program & { apiPort: number }> {
  const args = [...imageOptions(), "gatehouse.mjs", ...(role ? [role] : [])];
  const env = { ...world.env, LOG_LEVEL: "info" };
  const program = await startProgram(args, env, (line) => {
    if (!line.includes('"process.started"')) return undefined;
    const portOf = (which: string) => Number(new RegExp(`"${which}":(\\d+)`).exec(line)?.[1]);
    return { port: portOf("port"), apiPort: portOf("doorPort") };
  });
  if (role !== "worker") await introduce(world, program.told.port);
  return { ...program, apiPort: program.told.apiPort };
}

/** Tells the sandbox Slack where the app is, or waits until it has come by itself. */
export async function introduce(world: World, port: number): Promise<void> {
  if (world.env["SLACK_SIGNING_SECRET"] === undefined) await world.slack.connected();
  else world.slack.app.requestUrl = `http://127.0.0.1:${port}/slack/events`;
}
