import { randomBytes } from "node:crypto";
import { inject } from "vitest";
import type { CallRecord } from "../../sandbox/slack/web-api/call-log.ts";
import { buildWorld, type World, type WorldOptions } from "../../demo/world.ts";
import type { PersonActions } from "../../sandbox/slack/actions.ts";
import type { Pace } from "../../src/config/policy-schema.ts";
import type { SlackLimits } from "../../src/core/deliver/rate-limiter.ts";
import { createJournal, type Journal } from "../../src/core/request/journal.ts";
import { whyOf } from "../../src/core/request/stage.ts";
import type { StoredRequest } from "../../src/core/request/stored-request.ts";
import { silentLog } from "../../src/log/log.ts";
import { readPending } from "../../src/redis/pending.ts";
import { connectRedis, createKeys, type Keys, type RedisClient } from "../../src/redis/redis.ts";
import { keepRendered } from "./keep-rendered.ts";
import { noteSounds, sameSounding } from "./same-sounding.ts";
import { countPendingDeliveries } from "./pending-deliveries.ts";
import { patience, surroundings, until, watch } from "./until.ts";
import { type PrivateRedis, privateRedis } from "./with-redis.ts";

/** A world on the Redis that all tests share, in a namespace of its own, where everything takes milliseconds. */
export interface TestWorld extends World {
  olivia: PersonActions;
  amir: PersonActions;
  vera: PersonActions;
  ada: PersonActions;
  store: Journal;
  key: Keys;
  /** A connection of the test's own, for reading and for breaking what Gatehouse keeps. */
  client: RedisClient;
  /** Everything that was logged, line by line. */
  lines: string[];
  /** Resolves with the newest request once it has ended and Slack was told everything. */
  ended(command?: string): Promise<StoredRequest>;
  /** Resolves once every request is final, `unknown`, or a `draft`, and no message about one is pending. */
  settled(): Promise<StoredRequest[]>;
}

export interface TestWorldOptions extends Omit<WorldOptions, "pace"> {
  pace?: Partial<Pace>;
  /** Starts a Redis for this world alone, in place of the shared one. */
  hasOwnRedis?: boolean;
}

/**
 * A pace for tests: what takes seconds in production takes milliseconds, in the same order. Its deadlines are so long that no machine
 * meets them by being slow. The fleet is read again as rarely as in production: a story about what a read finds says how soon that is.
 */
export const testPace: Pace = {
  restartMarkMs: 600_000,
  pollFirstMs: 20,
  pollMostMs: 100,
  stableGapMs: 30,
  transitionGapMs: 30,
  claimWindowMs: 60_000,
  heartbeatMs: 5_000,
  sweepMs: 5_000,
  editMs: 200,
  messageRetryMs: 200,
  peopleCacheMs: 1_000,
  inventoryRefreshMs: 60_000,
  inventoryAgainMs: 50,
  remedyMs: 300_000,
};

/** Slack's limits in milliseconds in place of seconds. */
const testLimits: SlackLimits = {
  posts: { interval: 20, burst: 4, reserve: 2 },
  edits: { interval: 20, burst: 20, reserve: 8 },
};

const testDurations = {
  httpTimeout: "60s",
  quiesce: "4m",
  settleDeadline: "30m",
  reminders: "[1h]",
};

/** For tests in which something never answers, settles, or comes back: the shortest deadlines that suit each other. */
export const shortDeadlines = {
  pace: { restartMarkMs: 1_500, claimWindowMs: 600, heartbeatMs: 400, sweepMs: 500 },
  timing: { httpTimeout: "700ms", quiesce: "2000ms", settleDeadline: "4s" },
};

const timingOf = (durations: Readonly<Record<string, string>>) =>
  `timing: { ${Object.entries(durations)
    .map(([name, duration]) => `${name}: ${duration}`)
    .join(", ")} }`;

export const testTiming = timingOf(testDurations);

/** The sections in which a policy differs from that of most tests. */
export interface PolicyDifference {
  view?: readonly string[];
  operate?: readonly string[];
  approve?: readonly string[];
  administer?: readonly string[];
  breakGlass?: readonly string[];
  protect?: readonly string[];
  /** The channels of these sections; `undefined` leaves a section out. */
  audit?: string | undefined;
  alerts?: string | undefined;
  sharedChannels?: readonly string[] | undefined;
  /** Durations beside or in place of the tests' own. */
  timing?: Readonly<Record<string, string>>;
}

/** A gatehouse.yml that says where it differs; `more` holds further sections of it. */
export function policyWith(difference: PolicyDifference = {}, more = ""): string {
  const is = {
    view: ["*"],
    operate: ["S01ONCALL"],
    approve: ["S02LEADS"],
    administer: ["U0ADA"],
    breakGlass: ["U0ADA"],
    protect: ["vault-*"],
    audit: "C03AUDIT",
    alerts: "C02STATUS",
    sharedChannels: ["C07VENDOR"],
    ...difference,
    timing: { ...testDurations, ...difference.timing },
  };
  const section = (name: string, words: string | undefined) =>
    words === undefined ? "" : `${name}: ${words}\n`;
  const told = (channel: string | undefined) => channel && `{ channel: ${channel} }`;
  return `access:
  view: ${JSON.stringify(is.view)}
  operate: ${JSON.stringify(is.operate)}
  approve: ${JSON.stringify(is.approve)}
  administer: ${JSON.stringify(is.administer)}
  breakGlass: ${JSON.stringify(is.breakGlass)}
protect: ${JSON.stringify(is.protect)}
${section("audit", told(is.audit))}${section("alerts", told(is.alerts))}${section("sharedChannels", JSON.stringify(is.sharedChannels))}${timingOf(is.timing)}
${more}`;
}

export const testPolicy = policyWith();

/** The world of most tests: the demo's builder with a pace, a policy, and a Redis for tests. Every option may be left out. */
export async function startWorld(options: TestWorldOptions = {}): Promise<TestWorld> {
  const { hasOwnRedis = false, ...rest } = options;
  const namespace = options.namespace ?? `test-${randomBytes(6).toString("hex")}`;
  const lines: string[] = [];
  const sounds = new Set<string>();
  const onCall = (record: CallRecord) => {
    keepRendered(record);
    for (const label of sameSounding(record)) sounds.add(label);
  };
  const world = await buildWorld({
    policy: testPolicy,
    ...(hasOwnRedis ? {} : { redisUrl: options.redisUrl ?? inject("redisUrl") }),
    ...rest,
    namespace,
    pace: { ...testPace, ...options.pace },
    slackLimits: options.slackLimits ?? testLimits,
    compute: { transitionMs: 60, isReadFirst: true, ...options.compute },
    slack: {
      rateLimits: "off",
      onCall,
      waiting: { patience, explain: surroundings },
      ...options.slack,
      app: { ackTimeoutMs: 90_000, triggerLifeMs: 90_000, ...options.slack?.app },
    },
    onLog: (line) => {
      lines.push(line);
      options.onLog?.(line);
    },
  });
  const client = await connectRedis(world.redisUrl, "commands", silentLog(), { namespace });
  const key = createKeys(namespace);
  const store = createJournal(client, key);

  async function newest(): Promise<StoredRequest[]> {
    return store.getMany(await store.recentIds({}, 200));
  }

  const pendingDeliveries = countPendingDeliveries(client, key);
  /** An acknowledged delivery may become a request only afterwards. */
  const hasPendingDeliveries = async () => (await pendingDeliveries()) > 0;

  const describe = async () => {
    const requests = (await newest()).map(
      ({ record, state, stage }) =>
        `${record.command} ${record.target.name}: ${state} (${whyOf(stage) ?? ""})`,
    );
    return `the requests are ${requests.join("; ") || "none"}`;
  };

  const stopWatching = watch({ lines, onChange: (listener) => world.slack.onChange(listener) });
  const close = async () => {
    stopWatching();
    await world.close();
    client.disconnect();
    // Rows of the fault suite start worlds outside of Vitest.
    if (process.env["VITEST"] !== undefined) await noteSounds(inject("redisUrl"), [...sounds]);
  };
  // The first start tells the audit channel about its policy. A test counts messages from after that
  if (world.processes.length > 0)
    await until(async () => (await readPending(client, key)).has("notice")).toBe(false);
  return {
    ...world,
    olivia: world.slack.person("olivia"),
    amir: world.slack.person("amir"),
    vera: world.slack.person("vera"),
    ada: world.slack.person("ada"),
    store,
    key,
    client,
    lines,
    ended: (command) =>
      until(async () => {
        // Else the request before this one may be the newest still.
        if (await hasPendingDeliveries()) return undefined;
        const [request] = (await newest()).filter(
          ({ record }) => command === undefined || record.command === command,
        );
        if (!request?.final && request?.state !== "unknown") return undefined;
        return (await store.outbox.depth()) === 0 ? request : undefined;
      }, describe),
    settled: () =>
      until(async () => {
        if (await hasPendingDeliveries()) return undefined;
        const requests = await newest();
        const areSettled = requests.every(
          ({ final, state }) => final || state === "unknown" || state === "draft",
        );
        const { outbox, sharedCards } = store;
        const owed = (await outbox.depth()) + (await sharedCards.outbox.depth());
        return areSettled && owed === 0 ? requests : undefined;
      }, describe),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** A world without Gatehouse. */
export interface ProgramWorld extends TestWorld {
  /** The world's own Redis, which a test may kill and start again. */
  ownRedis: PrivateRedis;
}

/**
 * A world for tests that start Gatehouse as a program (`startProgram` with `world.env`): it has a Redis of its own, because a program
 * knows no other namespace than production's.
 */
export async function startWorldForPrograms(options: TestWorldOptions = {}): Promise<ProgramWorld> {
  const ownRedis = await privateRedis();
  const dispose = () => ownRedis[Symbol.asyncDispose]();
  try {
    const world = await startWorld({
      roles: [],
      namespace: createKeys().namespace,
      redisUrl: ownRedis.url,
      ...options,
    });
    const close = async () => {
      await world.close();
      await dispose();
    };
    return { ...world, ownRedis, close, [Symbol.asyncDispose]: close };
  } catch (error) {
    await dispose();
    throw error;
  }
}
