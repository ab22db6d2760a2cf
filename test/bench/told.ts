import { setTimeout as sleep } from "node:timers/promises";
import { buildWorld, type World } from "../../demo/world.ts";
import { messageOf } from "../../src/errors.ts";
import { type Figure, type Measured, quantile } from "./figure.ts";
import { startGatehouse } from "./process.ts";

const policy = `access: { operate: ["S01ONCALL", "S02LEADS"] }
limits: { requestsPerMinute: 10000 }
`;
const settleMs = 300;
const patienceMs = 300_000;

interface Asked {
  vm: string;
  /** User ID. */
  by: string;
  channelId: string;
  typedAt: number;
  toldAt?: number;
  /** Why it was not even taken. */
  failure?: string;
}

/** From a typed command to a result that its requester can see, with Slack's own limits and its service settling quickly. */
export async function measureTold(): Promise<readonly Figure[]> {
  const [alone = Infinity] = await burst(1);
  const bursts: Measured[] = [];
  for (const [count, most] of [
    [10, 2.5],
    [30, 3.5],
    [300, 12],
  ] as const)
    bursts.push({ value: quantile(await burst(count), 0.95), unit: "s", most });
  return [
    {
      name: `one restart: from typed to told, its VM taking ${settleMs / 1000} s`,
      values: [{ value: alone, unit: "s", most: 1.2 }],
    },
    {
      name: "10, 30, 300 restarts of two people in one channel within a second: 95% are told within",
      values: bursts,
    },
  ];
}

export const running = (world: World) =>
  Object.values(world.compute.truth().vms)
    .filter(({ status }) => status === "RUNNING")
    .map(({ name }) => name);

export const seconds = ({ typedAt, toldAt = Infinity }: Asked) => (toldAt - typedAt) / 1000;

/** How long each took to be told (s): of another VM each, all within a second, by two people in turn. */
async function burst(count: number): Promise<readonly number[]> {
  await using world = await buildWorld({
    roles: [],
    policy,
    compute: { world: { projects: 20, vmsPerProject: 40 }, transitionMs: settleMs },
    slack: { rateLimits: "slack" },
  });
  await using programs = new AsyncDisposableStack();
  programs.use(await startGatehouse(world));
  const vms = running(world);
  // Names are read, and code is warm
  await tell(world, ask(world, [vms.at(-1) ?? ""], ["C01OPS"], 0));
  await sleep(6_000); // the limits have forgotten it
  const where = Array.from({ length: count }, () => "C01OPS");
  const told = await tell(world, ask(world, vms, where, 800));
  return told.map(seconds);
}

/** Types them all over so many milliseconds, one person after the other. */
export function ask(
  world: World,
  vms: readonly string[],
  where: readonly string[],
  overMs: number,
  who: readonly string[] = ["olivia", "amir"],
): Asked[] {
  return where.map((channelId, n) => {
    const person = world.slack.person(who[n % who.length] ?? "");
    const vm = vms[n] ?? "";
    const asked: Asked = { vm, by: person.id, channelId, typedAt: 0 };
    const type = async () => {
      await sleep((n * overMs) / where.length);
      asked.typedAt = performance.now();
      const outcome = await person.types(channelId, `/vm restart ${vm}`);
      if (!outcome.acked) throw new Error(`not acknowledged: ${outcome.error}`);
    };
    type().catch((error: unknown) => (asked.failure = messageOf(error)));
    return asked;
  });
}

/** Looks ten times a second until all are told. */
export async function tell(world: World, asked: readonly Asked[]): Promise<readonly Asked[]> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const failed = asked.find(({ failure }) => failure !== undefined);
    if (failed) throw new Error(`${failed.vm}: ${failed.failure}`);
    const waiting = asked.filter(({ toldAt }) => toldAt === undefined);
    if (waiting.length === 0 || performance.now() > deadline) return asked;
    const threads = readThreads(world);
    for (const one of waiting) if (isTold(one, threads)) one.toldAt = performance.now();
    await sleep(100);
  }
}

/** Everything the bot says, thread by thread: the text of the first message and its replies. */
function readThreads(world: World): readonly string[] {
  const threads = Map.groupBy(
    world.slack.messages().filter(({ botId }) => botId !== undefined),
    ({ channelId, threadTs, ts }) => `${channelId} ${threadTs ?? ts}`,
  );
  return [...threads.values()].map((messages) =>
    messages.map(({ text, blocks }) => `${text}\n${JSON.stringify(blocks)}`).join("\n"),
  );
}

const ends = "✅|❌|⚪|:white_check_mark:|:x:";

/**
 * In whatever form: a result in the card's thread, a card that is the result, or a line of a message that several requests
 * share. The end stands beside the target's name, with no other target between, and the requester is mentioned there.
 */
function isTold({ vm, by }: Asked, threads: readonly string[]): boolean {
  const between = "(?:(?!vm-\\d)[^⏳]){0,200}";
  const name = `(?<![\\w-])${vm}(?![\\w-])`;
  const end = new RegExp(`(?:${ends})${between}${name}|${name}${between}(?:${ends})`);
  return threads.some((text) => end.test(text) && text.includes(`<@${by}>`));
}
