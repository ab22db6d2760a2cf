import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { buildWorld, type World } from "../../demo/world.ts";
import { Trail } from "../../src/audit/trail.ts";
import { type Keys, createKeys, fromPairs } from "../../src/redis/redis.ts";
import type { Figure } from "./figure.ts";
import { startGatehouse, startProgram } from "./process.ts";

const dayMs = 86_400_000;
const usualChangesADay = 206;
const keptDays = 90;
const atOnce = 500;
const policy = `access: { operate: ["S01ONCALL"], administer: ["U0ADA"] }
limits: { requestsPerMinute: 10000 }
`;
/** What people type whose answer depends on what was before. */
const commands = [
  "jobs",
  "approvals",
  "night",
  "night 6d",
  "night --file 6d",
  "audit",
  "audit olivia",
  "audit web-2",
  "audit verify",
  "audit export",
  "digest now",
  "digest handover",
].map((words) => `/gatehouse ${words}`);
const perCommand = 5;
const heapMb = 200;

/** What a process needs for what people type, five of each at once, with a year of changes in Redis. */
export async function measureYear(): Promise<readonly Figure[]> {
  await using world = await buildWorld({ roles: [], policy, compute: { transitionMs: 100 } });
  const redis = new Redis(world.env["REDIS_URL"] ?? "");
  const key = createKeys();
  await fillYear({
    redis,
    key,
    changesADay: usualChangesADay,
    id: await restartOnce(world, redis, key),
  });
  await using program = await startProgram(
    [`--max-old-space-size=${heapMb}`, "gatehouse.mjs"],
    { ...world.env, LOG_LEVEL: "info" },
    (line) => (line.includes('"process.started"') ? true : undefined),
  );
  await world.slack.connected();
  const trail = new Trail(redis, key);
  while ((await trail.records({ after: (await trail.head())?.id, most: 1 })).length > 0)
    await sleep(1_000);
  const ada = world.slack.person("U0ADA");
  for (const command of commands) {
    for (let n = 0; n < perCommand; n += 1) await ada.types("ops", command);
    await quiet(world);
  }
  redis.disconnect();
  return [
    {
      name: `${perCommand} of each reading command at once, ${365 * usualChangesADay} changes of a year in Redis: memory at most`,
      values: [{ value: program.peakMb(), unit: "MB", most: 450 }],
    },
  ];
}

/** Resolves once nothing was posted for some seconds. */
export async function quiet(world: World): Promise<void> {
  for (let last = -1; last !== world.slack.calls().length; await sleep(5_000))
    last = world.slack.calls().length;
}

/** Restarts a VM for real. Resolves with the request's ID once everybody was told. */
async function restartOnce(world: World, redis: Redis, key: Keys): Promise<string> {
  await using programs = new AsyncDisposableStack();
  programs.use(await startGatehouse(world));
  await world.slack.person("U0OLIVIA").types("ops", "/vm restart web-2");
  await quiet(world);
  const [id = ""] = await redis.zrevrange(key("requests", "recent"), 0, 0);
  return id;
}

interface Year {
  redis: Redis;
  key: Keys;
  /** The request that is copied. */
  id: string;
  changesADay: number;
}

/** Copies one request over a year, as it is kept: its records for ever, itself for 90 days. */
export async function fillYear({ redis, key, id, changesADay }: Year) {
  const fields = await redis.hgetall(key("request", id));
  const rows = await redis.xrange(key("audit"), "-", "+");
  const records = rows
    .map(([, row]) => fromPairs(row)["record"] ?? "")
    .filter((record) => record.includes(id));
  for await (const names of redis.scanStream({ match: `${key("audit")}*`, count: 1_000 }))
    await Promise.all((names as string[]).map((name) => redis.del(name)));
  const count = 365 * changesADay;
  const begin = Date.now() - 365 * dayMs;
  let writes = redis.pipeline();
  for (let n = 0; n < count; n += 1) {
    const at = begin + Math.round((n * dayMs) / changesADay);
    const own = `r-y${n.toString(36).padStart(8, "0")}`;
    for (const [step, record] of records.entries())
      writes.xadd(key("audit"), `${at}-${step}`, "at", at, "record", record.replaceAll(id, own));
    if (Date.now() - at < keptDays * dayMs) {
      const record = (fields["record"] ?? "").replaceAll(id, own);
      const times = { createdAt: at, changedAt: at, seenAt: at };
      writes.hset(key("request", own), { ...fields, record, ...times });
      for (const list of [
        key("requests", "recent"),
        key("requests", "person", "U0OLIVIA"),
        key("requests", "target", "vm-payments-web-2"),
      ])
        writes.zadd(list, at, own);
    }
    if (n % atOnce > 0 && n < count - 1) continue;
    await writes.exec();
    writes = redis.pipeline();
  }
}
