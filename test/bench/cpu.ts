import { setTimeout as sleep } from "node:timers/promises";
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

/** What one restart costs in processor time over all processes, with one worker and with four. */
export async function measureCpu(): Promise<readonly Figure[]> {
  const one = await cpuOfRestart(1);
  const four = await cpuOfRestart(4);
  return [
    {
      name: "one restart: CPU time of all processes; with four workers, against one",
      values: [
        { value: one, unit: "ms", most: 80 },
        { value: four / one, unit: "×", most: 1.25 },
      ],
    },
  ];
}

async function cpuOfRestart(workers: number): Promise<number> {
  await using world = await buildWorld({
    roles: [],
    policy,
    compute: { world: { projects: 20, vmsPerProject: 40 }, transitionMs: settleMs },
    slack: { rateLimits: "off" },
  });
  await using programs = new AsyncDisposableStack();
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
  // Names are read, and code is warm
  await restart(vms.slice(0, 10));
  await sleep(5_000);
  const used = () => all.reduce((sum, program) => sum + program.cpuMs(), 0);
  const [idleFrom, idleBegan] = [used(), performance.now()];
  await sleep(idleMs);
  const idlePerMs = (used() - idleFrom) / (performance.now() - idleBegan);
  const [from, began] = [used(), performance.now()];
  await restart(vms.slice(10, 10 + restarts));
  await sleep(2_000); // the last edits, the seal
  return (used() - from - idlePerMs * (performance.now() - began)) / restarts;
}
