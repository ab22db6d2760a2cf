import { randomBytes } from "node:crypto";
import { inject } from "vitest";
import { whyOf } from "../../src/core/request/stage.ts";
import type { StoredRequest } from "../../src/core/request/stored-request.ts";
import type { Pace } from "../../src/config/policy-schema.ts";
import { createJournal, type Journal } from "../../src/core/request/journal.ts";
import { createKeys, type Keys, connectRedis, type RedisClient } from "../../src/redis/redis.ts";
import { silentLog } from "../../src/log/log.ts";
import { readPending } from "../../src/redis/pending.ts";
import type { PersonActions } from "../../sandbox/slack/actions.ts";
import {
  startWorld as startSandboxWorld,
  type World,
  type WorldOptions,
} from "../../demo/world.ts";
import { keepRendered } from "./keep-rendered.ts";
import { pendingDeliveries } from "./pending-deliveries.ts";

/** A world on the tests' shared Redis, in a namespace of its own, where everything takes milliseconds. */
export interface TestWorld extends World {
  olivia: PersonActions;
  amir: PersonActions;
  vera: PersonActions;
  ada: PersonActions;
  store: Journal;
  key: Keys;
  /** For looking at, and for breaking, what Gatehouse keeps. */
  client: RedisClient;
  /** Everything that was logged, line by line. */
  lines: string[];
  /** Resolves with the newest request once it has ended and Slack was told everything. */
  ended(command?: string, timeoutMs?: number): Promise<StoredRequest>;
  /** Resolves once no request is open but those in `unknown` and `draft`, and nothing waits to be said. */
  settled(timeoutMs?: number): Promise<StoredRequest[]>;
}

/** A pace for tests. */
export const testPace: Pace = {
  restartMarkMs: 1_500,
  pollFirstMs: 20,
  pollMostMs: 100,
  stableGapMs: 30,
  transitionGapMs: 30,
  claimWindowMs: 600,
  heartbeatMs: 200,
  sweepMs: 200,
  editMs: 200,
  peopleCacheMs: 1_000,
  inventoryRefreshMs: 5_000,
};
export const testTiming =
  "timing: { httpTimeout: 700ms, quiesce: 2000ms, settleDeadline: 4s, reminders: [1h] }";

export const testPolicy = `access:
  view: ["*"]
  operate: ["S01ONCALL"]
  approve: ["S02LEADS"]
  administer: ["U0ADA"]
  breakGlass: ["U0ADA"]
protect: ["vault-*"]
audit: { channel: C03AUDIT }
alerts: { channel: C02STATUS }
sharedChannels: [C07VENDOR]
${testTiming}
`;

/** For processes of their own, which go at the usual pace: the shortest times that suit it. */
export const usualPolicy = testPolicy.replace(
  testTiming,
  "timing: { httpTimeout: 1s, quiesce: 4s, settleDeadline: 30s }",
);

interface TestWorldOptions extends Omit<WorldOptions, "pace"> {
  pace?: Partial<Pace>;
}

export async function startWorld(options: TestWorldOptions = {}): Promise<TestWorld> {
  const namespace = options.namespace ?? `test-${randomBytes(6).toString("hex")}`;
  const redisUrl = options.redisUrl ?? inject("redisUrl");
  const lines: string[] = [];
  const world = await startSandboxWorld({
    policy: testPolicy,
    redisUrl,
    namespace,
    ...options,
    pace: { ...testPace, ...options.pace },
    compute: { transitionMs: 60, ...options.compute },
    slack: { rateLimits: "off", onCall: keepRendered, ...options.slack },
    onLog: (line) => {
      lines.push(line);
      options.onLog?.(line);
    },
  });
  const client = await connectRedis(redisUrl, "commands", silentLog());
  const key = createKeys(namespace);
  const store = createJournal(client, key);

  async function newest(): Promise<StoredRequest[]> {
    return store.getMany(await store.recentIds({}, 200));
  }

  /** Looks after every change in Slack, and a few times a second, because not every end is said there. */
  async function eventually<T>(
    wanted: () => Promise<T | undefined>,
    timeoutMs: number,
    describe: () => Promise<string>,
  ): Promise<T> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const found = await wanted();
      if (found !== undefined) return found;
      if (performance.now() > deadline) throw new Error(await describe());
      await new Promise<void>((resolve) => {
        const stop = world.slack.onChange(() => done());
        const timer = setTimeout(() => done(), 25);
        const done = () => {
          clearTimeout(timer);
          stop();
          resolve();
        };
      });
    }
  }

  const describe = async () => {
    const requests = (await newest()).map(
      ({ record, state, stage }) =>
        `${record.command} ${record.target.name}: ${state} (${whyOf(stage) ?? ""})`,
    );
    const complaints = lines.filter((line) => /"level":"(warn|error)"/.test(line)).slice(-5);
    return `Waited in vain. Requests: ${requests.join("; ") || "none"}.\n${complaints.join("")}`;
  };

  const close = async () => {
    await world.close();
    client.disconnect();
  };
  // The first start tells the audit channel of its policy: what a test counts begins after that
  if (world.processes.length > 0)
    await eventually(
      async () => ((await readPending(client, key)).has("notice") ? undefined : true),
      10_000,
      () => Promise.resolve("The policy's announcement was not posted."),
    );
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
    ended: (command, timeoutMs = 10_000) =>
      eventually(
        async () => {
          const [request] = (await newest()).filter(
            ({ record }) => command === undefined || record.command === command,
          );
          if (!request?.final && request?.state !== "unknown") return undefined;
          return (await store.outbox.depth()) === 0 ? request : undefined;
        },
        timeoutMs,
        describe,
      ),
    settled: (timeoutMs = 15_000) =>
      eventually(
        async () => {
          // What was acknowledged may become a request only afterwards
          if ((await pendingDeliveries(client, key)) > 0) return undefined;
          const requests = await newest();
          const areSettled = requests.every(
            ({ final, state }) => final || state === "unknown" || state === "draft",
          );
          const { outbox, sharedCards } = store;
          const owed = (await outbox.depth()) + (await sharedCards.outbox.depth());
          return areSettled && owed === 0 ? requests : undefined;
        },
        timeoutMs,
        describe,
      ),
    close,
    [Symbol.asyncDispose]: close,
  };
}
