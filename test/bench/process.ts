import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { World } from "../../demo/world.ts";

/** A program in a process of its own, so that what is measured doesn't share a thread with what measures it. */
export interface Program extends AsyncDisposable {
  readonly pid: number;
  /** Resident memory, in MB. */
  rssMb(): number;
  /** The most resident memory since its start, in MB. */
  peakMb(): number;
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
    rssMb: () => statusMb(child.pid, "VmRSS"),
    peakMb: () => statusMb(child.pid, "VmHWM"),
    cpuMs: () => cpuMsOf(child.pid),
    [Symbol.asyncDispose]: () => end(child),
  };
}

function statusMb(pid: number | undefined, field: "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]) / 1024;
}

/** User and system time, of which Linux keeps hundredths of a second. */
function cpuMsOf(pid: number | undefined): number {
  const [, fields = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  const [user, system] = fields.split(" ").slice(11, 13);
  return 10 * (Number(user) + Number(system));
}

/** The least that a Slack app can do; told is its port, where it has one. */
export const startBolt = (env: Record<string, string>) =>
  startProgram(["test/bench/bare-bolt.mjs"], env, (line) =>
    line.startsWith("ready ") ? Number(line.slice(6)) : undefined,
  );

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  // What runs is of no interest any more, and some of it hangs on purpose
  child.kill("SIGKILL");
  await gone;
}

/** Those of Node.js in the image. */
export const imageOptions = (): readonly string[] =>
  readFileSync("Dockerfile", "utf8")
    .match(/^ENTRYPOINT .*$/m)?.[0]
    .match(/--[\w=-]+/g) ?? [];

/** The same for a process without a limit of its memory: that of deploy/. V8 collects less where its heap may grow further. */
function limitedOptions(): readonly string[] {
  const limits = readFileSync("deploy/helm/gatehouse/values.yaml", "utf8");
  const limitMb = Number(/limits: \{ memory: (\d+)Mi \}/.exec(limits)?.[1]);
  return imageOptions().map((option) =>
    option.replace(
      /^--max-old-space-size-percentage=(\d+)$/,
      (_, percent) => `--max-old-space-size=${Math.floor((limitMb * Number(percent)) / 100)}`,
    ),
  );
}

/** Gatehouse as it runs in production, in this world; with a request URL where it is started for HTTP. */
export async function startGatehouse(
  world: World,
  role?: "gateway" | "worker",
): Promise<Program & { apiPort: number }> {
  const args = [...limitedOptions(), "gatehouse.mjs", ...(role ? [role] : [])];
  const env = { ...world.env, LOG_LEVEL: "info" };
  const program = await startProgram(args, env, (line) => {
    if (!line.includes('"process.started"')) return undefined;
    const portOf = (which: string) => Number(new RegExp(`"${which}":(\\d+)`).exec(line)?.[1]);
    return { port: portOf("port"), apiPort: portOf("apiPort") };
  });
  if (role !== "worker") await introduce(world, program.told.port);
  return { ...program, apiPort: program.told.apiPort };
}

/** Tells the sandbox Slack where the app is, or waits until it has come by itself. */
export async function introduce(world: World, port: number): Promise<void> {
  if (world.env["SLACK_SIGNING_SECRET"] === undefined) await world.slack.connected();
  else world.slack.app.requestUrl = `http://127.0.0.1:${port}/slack/events`;
}
