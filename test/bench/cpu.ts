import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { buildWorld } from "../../demo/world.ts";
import type { Figure } from "./figure.ts";
import { type Program, startGatehouse } from "./process.ts";
import { ask, running, tell } from "./told.ts";

const policy = `access: { operate: ["S01ONCALL", "S02LEADS"] }
limits: { requestsPerMinute: 10000 }
`;
const settleMs = 300;
const idleMs = 15_000;
/** One a second, each told before the next or beside it, as on a busy night. */
const restarts = 40;

/** What one restart costs, of all processes and of Redis. */
interface Cost {
  cpuMs: number;
  /** Commands that Redis ran, those within scripts too. */
  commands: number;
  /** What Redis appended to its file. */
  appendedBytes: number;
}

/** What one restart costs over all processes, with one worker and with four. */
export async function measureCpu(): Promise<readonly Figure[]> {
  const one = await costOfRestart(1);
  const four = await costOfRestart(4);
  return [
    {
      name: "one restart: CPU time of all processes; with four workers, against one",
      values: [
        { value: one.cpuMs, unit: "ms", most: 80 },
        { value: four.cpuMs / one.cpuMs, unit: "×", most: 1.25 },
      ],
    },
    {
      name: "… its Redis commands, those within scripts too; what Redis appends to its file",
      values: [
        { value: one.commands, unit: "" },
        { value: one.appendedBytes / 1_000, unit: "kB" },
      ],
    },
  ];
}

async function costOfRestart(workers: number): Promise<Cost> {
  await using world = await buildWorld({
    roles: [],
    policy,
    compute: { world: { projects: 20, vmsPerProject: 40 }, transitionMs: settleMs },
    slack: { rateLimits: "off" },
  });
  const redis = new Redis(world.redisUrl);
  await using programs = new AsyncDisposableStack();
  programs.defer(() => redis.disconnect());
  await redis.config("SET", "appendonly", "yes");
  const all: Program[] = [];
  const add = async (role: "gateway" | "worker") => {
    const env = { ...world.env, DATA_DIR: `${world.env["DATA_DIR"]}-${all.length}` };
    all.push(programs.use(await startGatehouse({ ...world, env }, role)));
  };
  await add("gateway");
  for (let n = 0; n < workers; n++) await add("worker");
  const vms = running(world);
  const restart = async (which: readonly string[]) => {
    const where = which.map(() => "C01OPS");
    await tell(world, ask(world, which, where, which.length * 1_000));
  };
  /** All that was used so far, and when that was (ms). */
  const read = async () => {
    const info = await redis.info();
    const numberIn = (field: string) => Number(new RegExp(`${field}:(\\d+)`).exec(info)?.[1]);
    return {
      at: performance.now(),
      cpuMs: all.reduce((sum, program) => sum + program.cpuMs(), 0),
      commands: numberIn("total_commands_processed"),
      appendedBytes: numberIn("aof_current_size"),
    };
  };
  // Names are read, and code is warm
  await restart(vms.slice(0, 10));
  await sleep(5_000);
  const idle = await read();
  await sleep(idleMs);
  const before = await read();
  await restart(vms.slice(10, 10 + restarts));
  await sleep(2_000); // the last edits, the seal
  const after = await read();
  /** What a restart takes beyond idleness. */
  const perRestart = (field: keyof Cost) => {
    const idlePerMs = (before[field] - idle[field]) / (before.at - idle.at);
    return (after[field] - before[field] - idlePerMs * (after.at - before.at)) / restarts;
  };
  return {
    cpuMs: perRestart("cpuMs"),
    commands: perRestart("commands"),
    appendedBytes: perRestart("appendedBytes"),
  };
}
