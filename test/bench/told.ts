import { setTimeout as sleep } from "node:timers/promises";
import { startWorld, type World } from "../../sandbox/world.ts";
import { messageOf } from "../../src/errors.ts";
import { type Figure, quantile } from "./figure.ts";
import { startGatehouse } from "./process.ts";

const policy = `access: { operate: ["S01ONCALL", "S02LEADS"] }
limits: { requestsPerMinute: 10000 }
sharedChannels: [C07VENDOR]
`;
const settleMs = 300;
const channels = ["C01OPS", "C02STATUS", "C07VENDOR"] as const;
const patienceMs = 300_000;
const quietMs = 15_000;

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
  const alone = await burst(1, ["C01OPS"]);
  const figures: Figure[] = [
    {
      name: `one restart, typed to told, a VM taking ${settleMs} ms`,
      value: quantile(alone, 0.5),
      unit: "s",
      bound: 2.5,
    },
  ];
  for (const [count, bound] of [
    [10, 4],
    [30, 8],
    [300, 25],
  ] as const) {
    const told = await burst(count, ["C01OPS"]);
    figures.push(
      {
        name: `${count} restarts of two people in one channel within a second, typed to told: p50`,
        value: quantile(told, 0.5),
        unit: "s",
      },
      { name: `… p95`, value: quantile(told, 0.95), unit: "s", bound },
    );
  }
  return [...figures, ...(await measureQuietChannel())];
}

/** Sixty in one channel, thirty in a second: is one in a third told as if alone? */
async function measureQuietChannel(): Promise<readonly Figure[]> {
  const [busy, other, quiet] = channels;
  const all = await play([
    ...Array.from({ length: 60 }, () => busy),
    ...Array.from({ length: 30 }, () => other),
    quiet,
  ]);
  const inQuiet = all.filter(({ channelId }) => channelId === quiet).map(seconds);
  return [
    {
      name: "60 in one channel, 30 in a second, one in a third: typed to told in the third",
      value: quantile(inQuiet, 0.5),
      unit: "s",
      bound: 2.5,
    },
  ];
}

/** A thousand requests within a minute, and then nothing: what stays. */
export async function measureAfterBurst(): Promise<readonly Figure[]> {
  await using world = await startWorld({
    roles: [],
    policy,
    compute: { world: { projects: 30, vmsPerProject: 40 }, transitionMs: settleMs },
    slack: { rateLimits: "off" },
  });
  await using programs = new AsyncDisposableStack();
  const gatehouse = programs.use(await startGatehouse(world));
  const vms = running(world);
  await tell(world, ask(world, [vms.at(-1) ?? ""], ["C01OPS"], 0));
  await sleep(quietMs);
  const before = gatehouse.rssMb();
  const where = Array.from({ length: 1_000 }, (_, n) => channels[n % channels.length] ?? "");
  const told = await tell(world, ask(world, vms, where, 50_000));
  await sleep(quietMs);
  return [
    {
      name: `${told.length.toLocaleString("en")} requests within a minute, then ${quietMs / 1000} s of quiet: memory beyond that before`,
      value: gatehouse.rssMb() - before,
      unit: "MB",
      bound: 30,
    },
  ];
}

export const running = (world: World) =>
  Object.values(world.compute.truth().vms)
    .filter(({ status }) => status === "RUNNING")
    .map(({ name }) => name);

const burst = async (count: number, where: readonly string[]) =>
  (await play(Array.from({ length: count }, (_, n) => where[n % where.length] ?? ""))).map(seconds);

export const seconds = ({ typedAt, toldAt = Infinity }: Asked) => (toldAt - typedAt) / 1000;

/** One restart for each channel named, all within a second, of another VM each, by two people in turn. */
async function play(where: readonly string[]): Promise<readonly Asked[]> {
  await using world = await startWorld({
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
  return await tell(world, ask(world, vms, where, 800)); // the world must outlive it
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
