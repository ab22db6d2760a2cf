import { hostname } from "node:os";
import * as z from "zod";
import type { Role } from "../config/config.ts";
import type { Log } from "../log/log.ts";
import type { LogLoss } from "../log/output.ts";
import {
  type Keys,
  type RedisClient,
  defineScript,
  redisNow,
  redisTimeLua,
} from "../redis/redis.ts";
import { defineRecord } from "../redis/define-record.ts";
import { repeatHere } from "../redis/repeat.ts";
import type { Clock, SlackClock } from "./clock.ts";

/** The services that Gatehouse calls, and its own API. */
const called = ["slack", "service", "api"] as const;
export type Called = (typeof called)[number];

const tallyShape = z.object({
  calls: z.int(),
  /** Failed calls by how they failed: `429`, `503`, `unreachable`. */
  failed: z.record(z.string(), z.int()),
});
const talliesShape = z.partialRecord(z.enum(called), tallyShape);

/** The calls of the last minute. */
export type Tally = z.output<typeof tallyShape>;
export type Tallies = z.output<typeof talliesShape>;

const bucketMs = 5_000;
const buckets = 12;

/** Counts this process's calls of the last minute, in memory. */
export function createTallies(now: () => number = () => performance.now()) {
  const seen: { at: number; of: Called; failed: string | undefined; count: number }[] = [];

  function forgetOld(): void {
    const oldest = Math.floor(now() / bucketMs) - buckets;
    const kept = seen.findIndex(({ at }) => at > oldest);
    seen.splice(0, kept < 0 ? seen.length : kept);
  }

  return {
    /** `failed` says how the call failed, in a word. Undefined for a call that was answered. */
    countCall(of: Called, failed: string | undefined): void {
      forgetOld();
      const at = Math.floor(now() / bucketMs);
      const same = seen.findLast(
        (tally) => tally.at === at && tally.of === of && tally.failed === failed,
      );
      if (same) same.count += 1;
      else seen.push({ at, of, failed, count: 1 });
    },
    lastMinute(): Tallies {
      forgetOld();
      return sumTallies(
        seen.map(({ of, failed, count }) => ({
          [of]: { calls: count, failed: failed === undefined ? {} : { [failed]: count } },
        })),
      );
    },
  };
}

export type CallTallies = ReturnType<typeof createTallies>;

export function sumTallies(all: readonly Tallies[]): Tallies {
  const sum: Tallies = {};
  for (const of of called) {
    const tallies = all.flatMap((counts) => counts[of] ?? []);
    if (tallies.length === 0) continue;
    const failed: Record<string, number> = {};
    for (const [how, count] of tallies.flatMap((tally) => Object.entries(tally.failed)))
      failed[how] = (failed[how] ?? 0) + count;
    sum[of] = { calls: tallies.reduce((total, { calls }) => total + calls, 0), failed };
  }
  return sum;
}

const presenceShape = z.object({
  role: z.enum(["all", "gateway", "worker"]),
  host: z.string(),
  tallies: talliesShape,
  /** How far its clock is ahead of Redis's (ms), negative when it is behind. */
  clockOffMs: z.number().default(0),
  /** The same of Slack's clock. */
  slackClockOffMs: z.number().default(0),
  /** Log lines that nothing took, and since when none is taken (ms, by this process's clock). */
  logLoss: z.object({ lines: z.int(), since: z.number() }).optional(),
});

export const presenceRecord = defineRecord({ name: "process", schema: presenceShape });

/** A process of this installation, as it last reported. */
export interface KnownProcess extends z.output<typeof presenceShape> {
  name: string;
  /** Redis time (ms). */
  at: number;
  /**
   * True when it has reported nothing for several heartbeats, and hasn't announced that it stops.
   */
  isMissing: boolean;
}

const missedBeats = 5;
/**
 * How long a missing process is shown: long enough that someone sees it, and not forever, because
 * its machine may be gone on purpose.
 */
const forgottenAfterMs = 24 * 3600_000;

const reportScript = `${redisTimeLua}
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f ', now) .. ARGV[2])
return now
`;

const processesKey = (key: Keys) => key("processes");

/** The name of a process. One that restarts in the same data directory has the same name. */
export const processName = (dataDir: string): string => `${hostname()} ${dataDir}`;

/** The processes of this installation. Rejects while Redis is unavailable. */
export async function readProcesses(
  redis: RedisClient,
  key: Keys,
  beatMs: number,
): Promise<readonly KnownProcess[]> {
  const [now, all] = await Promise.all([redisNow(redis), redis.hgetall(processesKey(key))]);
  const read = Object.entries(all).map(([name, text]) => {
    const at = Number(text.slice(0, text.indexOf(" ")));
    const report = text.slice(text.indexOf(" ") + 1);
    return { name, at, presence: presenceRecord.parse(report, `${processesKey(key)} ${name}`) };
  });
  const old = read.filter(({ at }) => !(now - at < forgottenAfterMs)).map(({ name }) => name);
  if (old.length > 0) await redis.hdel(processesKey(key), ...old);
  return read.flatMap(({ name, at, presence }) =>
    presence === undefined || old.includes(name)
      ? []
      : [{ ...presence, name, at, isMissing: now - at > missedBeats * beatMs }],
  );
}

/**
 * Reports this process to the others, which notice when it stops reporting, and compares its clock
 * with Redis's each time. A process that stops properly removes its report.
 */
export async function startPresence(options: {
  redis: RedisClient;
  key: Keys;
  role: Role;
  dataDir: string;
  tallies: CallTallies;
  logLoss: () => LogLoss;
  clock: Clock;
  slackClock: Pick<SlackClock, "offMs">;
  beatMs: number;
  log: Log;
}) {
  const { redis, key, role, dataDir, tallies, logLoss, clock, slackClock, beatMs, log } = options;
  const run = defineScript(redis, "gatehouseReportProcess", reportScript);
  const host = hostname();
  const name = processName(dataDir);
  const report = async () => {
    const { lines, since } = logLoss();
    const presence = {
      role,
      host,
      tallies: tallies.lastMinute(),
      clockOffMs: clock.offMs(),
      slackClockOffMs: slackClock.offMs(),
      ...(since !== undefined && { logLoss: { lines, since } }),
    };
    const askedAt = Date.now();
    const redisMs = Number(await run([processesKey(key)], [name, presenceRecord.write(presence)]));
    clock.compare(askedAt, redisMs, Date.now());
  };
  await report().catch(() => undefined);
  const repeated = repeatHere("presence", beatMs, report, log);

  return {
    /** Rejects while Redis is unavailable. */
    known: () => readProcesses(redis, key, beatMs),
    async close(): Promise<void> {
      await repeated.close();
      await redis.hdel(processesKey(key), name).catch(() => undefined);
    },
  };
}
