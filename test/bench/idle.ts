import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { buildWorld } from "../../demo/world.ts";
import type { Figure } from "./figure.ts";
import { introduce, type Program, startBolt, startGatehouse } from "./process.ts";

const policy = `access: { operate: ["S01ONCALL"] }\n`;
/** Starting is over, and what it left was collected. */
const quietMs = 15_000;
const countedMs = 20_000;

interface Idle {
  /** Commands that Redis ran in a second, those within scripts too. */
  perSecond: number;
  mb: number;
}

/** What processes cost that have nothing to do, each alone with a Redis. */
export async function measureIdle(): Promise<readonly Figure[]> {
  const bolt = await idle(async (world) => {
    const app = await startBolt(world.env);
    await introduce(world, app.told);
    return app;
  });
  const [gateway, worker] = await Promise.all([
    idle((world) => startGatehouse(world, "gateway")),
    idle((world) => startGatehouse(world, "worker")),
  ]);
  return [
    {
      name: "an idle gateway, an idle worker: memory, each against an idle Bolt app in JavaScript",
      values: [gateway, worker].flatMap(({ mb }) => [
        { value: mb, unit: "MB" },
        { value: mb / bolt.mb, unit: "×", most: 1.5 },
      ]),
    },
    {
      name: "… their Redis commands a second, those within scripts too",
      values: [gateway, worker].map(({ perSecond }) => ({ value: perSecond, unit: "", most: 40 })),
    },
  ];
}

type Start = (world: Awaited<ReturnType<typeof buildWorld>>) => Promise<Program>;

async function idle(start: Start): Promise<Idle> {
  await using world = await buildWorld({ roles: [], policy });
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

/** All that Redis ran since its start. */
async function processed(redis: Redis): Promise<number> {
  return Number(/total_commands_processed:(\d+)/.exec(await redis.info("stats"))?.[1]);
}
