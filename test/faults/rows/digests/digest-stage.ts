import { connect } from "node:net";
import { createInterface } from "node:readline";
import { looking } from "../../stage/looking.ts";
import { textsIn } from "../rollouts/rollout-stage.ts";
import { type Expectation, onStage, type Story } from "../row.ts";
import { sharedWithVendor } from "../vendor-channel.ts";
import type { Stage } from "../../stage/stage.ts";
import { createKeys } from "../../../../src/redis/redis.ts";
import { pendingOf } from "../../../support/pending.ts";
import type { Bot } from "../../stage/start-bot.ts";

export const minute = 60_000;
export const hour = 60 * minute;
export const day = 24 * hour;

export const ops = "C01OPS";
export const status = "C02STATUS";

interface DigestRule {
  channel: string;
  at: string;
  timezone?: string;
  days?: string;
}

/** gatehouse.yml with these digests; alarms come to the audit channel. */
export function digestPolicy(rules: readonly DigestRule[]): string {
  const rows = rules.map(
    ({ channel, at, timezone = "UTC", days = "daily" }) =>
      `  - { channel: ${channel}, at: "${at}", timezone: ${timezone}, days: "${days}" }`,
  );
  return `alerts: { channel: C03AUDIT }\n${sharedWithVendor}digests:\n${rows.join("\n")}\n`;
}

/** Runs `story` with these digests, under one clock that a row sets, and without a worker until the row starts one. */
export const onDigestStage = (
  seed: number,
  rules: readonly DigestRule[],
  story: (stage: Stage) => Promise<Story>,
): Promise<Story> =>
  onStage({ seed, workers: 0, oneClock: true, policy: digestPolicy(rules) }, story);

/** Today at that time (UTC), for slots; the clocks of the processes are set around it. */
export function today(at: number): number {
  return Math.floor(Date.now() / day) * day + at;
}

/** The name of a slot as it is documented; the rows reckon it themselves. */
export function slotName(channel: string, at: number): string {
  const [date = "", time = ""] = new Date(at).toISOString().split("T");
  return `digest-${channel}-${date}-${time.slice(0, 5).replace(":", "")}-UTC`;
}

/** A worker whose wall clock shows `at` when it begins. */
export async function workerAt(stage: Stage, at: number, slot?: string): Promise<Bot> {
  const bot = await loadedWorker(stage, slot);
  await startAt(bot, at);
  return bot;
}

/** Loading takes a second or two, more on a busy machine: so it is done before the clock counts. */
export async function loadedWorker(stage: Stage, slot?: string): Promise<Bot> {
  return stage.addBot("worker", { begin: false, clockOffMs: 0, ...(slot ? { slot } : {}) });
}

export async function startAt(bot: Bot, at: number): Promise<void> {
  await setTo(bot, at);
  await bot.begin();
  if (bot.isGone()) throw new Error(`it ended at once: ${bot.refused ?? bot.lastWords()}`);
}

export const setTo = (bot: Bot, at: number): Promise<void> => bot.setClock(at - Date.now());

/** Schedules don't begin in the past: a worker looks at them at `at`, and is gone. */
export async function knowSchedules(stage: Stage, at: number, count: number): Promise<void> {
  const first = await workerAt(stage, at);
  await looking(
    async () =>
      (await stage.redis.hlen(`{${stage.namespace}}:digest-known`)) >= count ? true : undefined,
    15_000,
    async () => "no worker looks at the schedules",
  );
  await first.kill();
}

export interface SaidDigest {
  channelId: string;
  ts: string;
  /** Of which slot, as its metadata says. */
  slot: string;
  /** Everything that it says. */
  words: string;
}

/** Every digest that stands in Slack, the oldest first. */
export async function digestsIn(stage: Stage, channelId?: string): Promise<SaidDigest[]> {
  const messages = await stage.slack.messages();
  return messages
    .filter((message) => channelId === undefined || message.channelId === channelId)
    .filter(({ text }) => /^Digest(,|:)/.test(text))
    .map((message) => ({
      channelId: message.channelId,
      ts: message.ts,
      slot: slotIn(message.metadata),
      words: textsIn(message.blocks).join("\n"),
    }))
    .toSorted((a, b) => Number(a.ts) - Number(b.ts));
}

function slotIn(metadata: unknown): string {
  const { event_payload: payload } = (metadata ?? {}) as { event_payload?: { request?: string } };
  return payload?.request ?? "";
}

/** Resolves when the digest of that slot stands in Slack. */
export async function digestOf(stage: Stage, slot: string, timeoutMs = 30_000) {
  return looking(
    async () => (await digestsIn(stage)).find((one) => one.slot === slot),
    timeoutMs,
    async () =>
      `${slot} is not in Slack; there are ${(await digestsIn(stage)).map((one) => one.slot).join(", ")}; it stands ${JSON.stringify(await stage.redis.hgetall(`{${stage.namespace}}:digest-slot:${slot}`))}`,
  );
}

/** Resolves when a slot has ended in Redis (posted or failed); Slack may still have to be told. */
export async function slotEnded(stage: Stage, slot: string): Promise<string> {
  return looking(
    async () =>
      (await stage.redis.hget(`{${stage.namespace}}:digest-slot:${slot}`, "ended")) ?? undefined,
    30_000,
    async () => `${slot} has not ended`,
  );
}

/** Resolves when nothing waits to be posted. */
export async function allSaid(stage: Stage): Promise<void> {
  await looking(
    async () =>
      (await pendingOf(stage.redis, createKeys(stage.namespace), "notice")) === 0
        ? true
        : undefined,
    40_000,
    async () => "notices are still waiting",
  );
}

/** Exactly these slots were told, each once. */
export async function toldOnce(stage: Stage, slots: readonly string[]): Promise<Expectation> {
  await allSaid(stage);
  const told = (await digestsIn(stage)).map(({ slot }) => slot).toSorted();
  return [
    `each digest once (${told.length} for ${slots.length} slots: ${told.join(" ")})`,
    JSON.stringify(told) === JSON.stringify(slots.toSorted()),
  ];
}

/**
 * Resolves when some worker has looked for digests that are due, and then once more: that begins with reading what was said in Slack,
 * and the next look of the same worker begins after its end.
 */
export async function haveLooked(stage: Stage): Promise<void> {
  const begun = new Map<string, number>();
  // Not with ioredis: its MONITOR loses count of the answers of a busy server
  const monitor = connect(stage.redisServer.port, "127.0.0.1", () => monitor.write("MONITOR\r\n"));
  monitor.on("error", () => undefined); // then nothing is seen, which is said below
  const read = `"hgetall" "{${stage.namespace}}:digest-schedules"`;
  try {
    createInterface({ input: monitor }).on("line", (line) => {
      const [, source = ""] = /\[\d+ (\S+)\]/.exec(line) ?? [];
      if (line.endsWith(read)) begun.set(source, (begun.get(source) ?? 0) + 1);
    });
    await looking(
      async () => ([...begun.values()].some((n) => n > 1) ? true : undefined),
      15_000,
      async () => `looks were begun: ${JSON.stringify([...begun])}`,
    );
  } finally {
    monitor.destroy();
  }
}
