import { appendFileSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Role } from "../../../src/config/config.ts";
import type { Pace } from "../../../src/config/policy-schema.ts";

/**
 * A test build of one Gatehouse process: the same `start` as src/operate/process.ts, with points of the protocol at which it can be
 * told, over stdin, to die, stop, throw, wait or block.
 *
 *     node test/faults/stage/bot.ts '{"role": "worker", "env": {…}, "log": "path"}'
 *
 * It imports everything and says so, waits for {"begin": true}, and says {"started": port, "probes": port, "api": port}.
 */
export interface BotOptions {
  role: Role;
  /** This file in another build of Gatehouse, relative to this one's folder. */
  script?: string;
  /** What the process itself is started with, beside what Gatehouse reads (`env`). */
  nodeEnv?: Record<string, string>;
  env: Record<string, string>;
  pace: Pace;
  log: string;
  slackLimits?: object;
  /** The wall clock of this process is so much off (ms); only where this is given it can be stepped later. */
  clockOffMs?: number;
}

/** At the n-th time (default 1) that `point` is reached, by `what` where that is given. */
export interface Rule {
  point: string;
  do: "kill" | "stop" | "throw" | "wait" | "block" | "exit" | "reject";
  nth?: number;
  what?: string;
  /** For block and wait: how long (ms). A wait without it lasts until {"go": true}. */
  forMs?: number;
  /** For kill and stop: so long after the point, while the process goes on (ms). */
  afterMs?: number;
}

const options = JSON.parse(process.argv[2] ?? "{}") as BotOptions;
const tell = (event: object) => {
  writeSync(1, `${JSON.stringify(event)}\n`);
};

let off = options.clockOffMs ?? 0;
if (options.clockOffMs !== undefined) {
  const RealDate = Date;
  const realNow = RealDate.now.bind(RealDate);
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args: []) =>
      args.length === 0 ? new target(realNow() + off) : (Reflect.construct(target, args) as Date),
    get: (target, name) => (name === "now" ? () => realNow() + off : Reflect.get(target, name)),
  });
}

let rules: (Rule & { seen: number })[] = [];
let go = Promise.withResolvers<void>();
const begin = Promise.withResolvers<void>();
process.stdin.ref();
createInterface({ input: process.stdin }).on("line", (text) => {
  const line = JSON.parse(text) as {
    arm?: Rule;
    disarm?: boolean;
    go?: boolean;
    begin?: boolean;
    clockOffMs?: number;
  };
  if (line.clockOffMs !== undefined) {
    off = line.clockOffMs;
    tell({ clockOffMs: off });
  }
  if (line.begin) begin.resolve();
  if (line.arm) {
    rules.push({ ...line.arm, seen: 0 });
    tell({ armed: line.arm.point });
  }
  if (line.disarm) rules = [];
  if (line.go) {
    go.resolve();
    go = Promise.withResolvers<void>();
  }
});

async function at(point: string, what: string): Promise<void> {
  const rule = rules.find(
    (one) => one.point === point && (one.what === undefined || one.what === what),
  );
  if (!rule) return;
  rule.seen += 1;
  if (rule.seen !== (rule.nth ?? 1)) return;
  rules = rules.filter((one) => one !== rule);
  const hit = () => tell({ hit: point, what, do: rule.do });
  switch (rule.do) {
    case "kill":
    case "stop": {
      const signal = rule.do === "kill" ? "SIGKILL" : "SIGSTOP";
      const strike = () => {
        hit();
        process.kill(process.pid, signal);
      };
      if (rule.afterMs === undefined) strike();
      else setTimeout(strike, rule.afterMs);
      return;
    }
    case "throw":
      hit();
      throw new Error(`thrown at ${point}, as told`);
    case "exit":
      hit();
      process.exit(1);
      break;
    case "reject":
      hit();
      void Promise.reject(new Error(`rejected at ${point}, as told`));
      return;
    case "wait":
      hit();
      return rule.forMs === undefined
        ? go.promise
        : new Promise((resolve) => setTimeout(resolve, rule.forMs));
    case "block":
      hit();
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, rule.forMs ?? 1000);
      return;
  }
}

const { loadConfig } = await import("../../../src/config/config.ts");
const { createLog, hideSecret } = await import("../../../src/log/log.ts");
const { start } = await import("../../../src/operate/start.ts");
const { commands, features, policyTerms } = await import("../../../src/features/index.ts");
const { sandboxRoots } = await import("../../../sandbox/evidence/vendors.ts");
const { isKnownSocketRejection } = await import("../../../src/slack/web-answer.ts");

const changing = commands.filter(({ kind }) => kind === "change").map(({ name }) => name);
tell({ loaded: true, commands: changing });
await begin.promise;

const config = loadConfig({
  env: options.env,
  role: options.role,
  terms: policyTerms,
  pace: options.pace,
});
for (const secret of config.secrets) hideSecret(secret);
const log = createLog({
  level: "debug",
  base: { role: config.role, pid: process.pid },
  write: (line) => appendFileSync(options.log, line),
});
const ends = (code: number, why: string) => {
  log.error("process.ends", { why });
  tell({ ends: why });
  process.exit(code);
};
process.on("unhandledRejection", (reason) => {
  if (isKnownSocketRejection(reason)) return;
  ends(1, `unhandled rejection: ${reason instanceof Error ? reason.stack : String(reason)}`);
});
process.on("uncaughtException", (error) => ends(1, `uncaught: ${error.stack}`));

try {
  const running = await start(config, log, {
    features,
    host: "127.0.0.1",
    roots: sandboxRoots,
    onWedged: (why) => ends(1, why),
    at,
    ...(options.slackLimits ? { slackLimits: options.slackLimits as never } : {}),
  });
  process.on("SIGHUP", () => void running.reload());
  process.once("SIGTERM", () => {
    const late = setTimeout(() => process.exit(0), 9500);
    void running.close().then(() => {
      clearTimeout(late);
      process.exit(0);
    });
  });
  tell({ started: running.port, probes: running.opsPort, api: running.apiPort });
} catch (error) {
  tell({ refused: error instanceof Error ? error.message : String(error) });
  process.exit(1);
}
