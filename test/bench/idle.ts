import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { startWorld } from "../../sandbox/world.ts";
import type { Figure } from "./figure.ts";
import {
  introduce,
  isReady,
  type Program,
  startBolt,
  startPlainBolt,
  startGatehouse,
  startProgram,
} from "./process.ts";

const policy = `access: { operate: ["S01ONCALL"] }\n`;
/** Starting is over, and what it left was collected. */
const quietMs = 15_000;
const countedMs = 20_000;

interface Idle {
  /** Commands that Redis ran in a second, those within scripts too. */
  perSecond: number;
  mb: number;
}

type Role = "gateway" | "worker" | undefined;

/** What processes cost that have nothing to do: each alone with a Redis, beside the least that Bolt and BullMQ can be. */
export async function measureIdle(): Promise<readonly Figure[]> {
  const [bolt, queue] = await Promise.all([idle(bare(startBolt)), idle(startQueue)]);
  const [gateway, worker] = await Promise.all([
    idle(gatehouse("gateway")),
    idle(gatehouse("worker")),
  ]);
  const [both, plain] = await Promise.all([idle(gatehouse(undefined)), idle(bare(startPlainBolt))]);
  return [
    commands("an idle gateway", gateway, 40),
    { ...commands("an idle worker", worker, 40), ratio: ratio(worker, queue, "perSecond") },
    commands("one idle process that is both", both),
    memory("an idle gateway", gateway, bolt, 1.5),
    memory("an idle worker", worker, bolt, 1.3),
    memory("one idle process that is both", both, bolt),
    memory("a bare BullMQ worker", queue, bolt),
    memory("a Bolt app without types to strip", plain, bolt),
  ];
}

const commands = (who: string, { perSecond }: Idle, bound?: number): Figure => ({
  name: `${who}: Redis commands a second, those within scripts too`,
  value: perSecond,
  unit: "",
  ...(bound === undefined ? {} : { bound }),
});

const ratio = (one: Idle, peer: Idle, what: keyof Idle) => ({
  to: "a BullMQ worker with two queues",
  times: one[what] / peer[what],
});

/** `bound`: how many times a bare Bolt app's. */
const memory = (who: string, { mb }: Idle, bolt: Idle, bound?: number): Figure => ({
  name: `${who}: memory`,
  value: mb,
  unit: "MB",
  ratio: { to: "an idle Bolt app", times: mb / bolt.mb, ...(bound === undefined ? {} : { bound }) },
});

type Start = (world: Awaited<ReturnType<typeof startWorld>>) => Promise<Program>;

async function idle(start: Start): Promise<Idle> {
  await using world = await startWorld({ roles: [], policy });
  await using program = await start(world);
  const redis = new Redis(world.redisUrl);
  try {
    await sleep(quietMs);
    const before = await processed(redis);
    await sleep(countedMs);
    const perSecond = ((await processed(redis)) - before - 1) / (countedMs / 1000);
    return { perSecond, mb: program.rssMb() };
  } finally {
    redis.disconnect();
  }
}

const gatehouse = (role: Role): Start => {
  return (world) => startGatehouse(world, role);
};

const bare = (startIt: typeof startBolt): Start => {
  return async (world) => {
    const app = await startIt(world.env);
    await introduce(world, app.told);
    return app;
  };
};

const startQueue: Start = (world) => startProgram(["test/bench/bare-queue.ts"], world.env, isReady);

/** All that Redis ran since its start. */
async function processed(redis: Redis): Promise<number> {
  return Number(/total_commands_processed:(\d+)/.exec(await redis.info("stats"))?.[1]);
}
