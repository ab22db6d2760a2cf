import { createHmac } from "node:crypto";
import { Agent } from "undici";
import { silentLog } from "../../src/log/log.ts";
import { createKeys, type Keys, connectRedis, type RedisClient } from "../../src/redis/redis.ts";
import type { StoredRequest } from "../../src/core/request/stored-request.ts";
import { createJournal, type Journal } from "../../src/core/request/journal.ts";
import { buildWorld, type World, type WorldOptions } from "../../demo/world.ts";
import { looking } from "../support/looking.ts";
import type { Tally } from "./fuzzed.ts";
import { type Pace, usualPace } from "../../src/config/policy-schema.ts";
import { pendingDeliveries } from "../support/pending-deliveries.ts";

/** Everything that changes something waits for an approval: so nothing may ever reach the service unapproved. */
const everything = ["*.*"];

const policyOf = (approved: readonly string[]) => `access:
  view: ["*"]
  operate: ["S01ONCALL"]
  approve: ["S02LEADS"]
  administer: ["U0ADA"]
  breakGlass: ["U0ADA"]
approvals:
  - { operations: ${JSON.stringify(approved)}, required: 1, expires: 1h }
protect: ["vault-*"]
limits: { requestsPerMinute: 10000, draftsPerPerson: 10000, destructivePerHour: 10000 }
audit: { channel: C03AUDIT }
alerts: { channel: C02STATUS }
timing: { httpTimeout: 1s, quiesce: 2200ms, settleDeadline: 6s }
`;

/** Fast, but for what would only interrupt. */
const quickPace: Pace = {
  ...usualPace,
  claimWindowMs: 200,
  heartbeatMs: 1_000,
  pollFirstMs: 20,
  pollMostMs: 100,
  stableGapMs: 30,
  transitionGapMs: 30,
  sweepMs: 1_000,
};

/** A whole Gatehouse in this process that Slack reaches over HTTP, and somebody who knows its signing secret. */
export interface FuzzWorld extends World {
  store: Journal;
  key: Keys;
  client: RedisClient;
  /** Posts a signed payload; its status, and what the ack said. 0 when nothing answered. */
  post(payload: object): Promise<{ status: number; said: string }>;
  requests(): Promise<StoredRequest[]>;
  audit(): Promise<Record<string, unknown>[]>;
  /** Resolves with the first request that fits. */
  until(fits: (request: StoredRequest) => boolean): Promise<StoredRequest>;
  /** Resolves when all that was taken is handled. */
  idle(): Promise<void>;
}

export interface FuzzWorldOptions {
  /** Operations that wait for an approval; all of them by default. */
  approved?: readonly string[];
  /** Instead of the usual one. */
  policy?: string;
  /** Further sections of gatehouse.yml. */
  sections?: string;
  pace?: Partial<Pace>;
  prepare?: WorldOptions["prepare"];
  /** Whether a delivery may fail that Bolt itself can't read (a body without a user): it is caught, logged, and acked, without a crash. */
  mayDeliveriesFail: boolean;
}

export async function startFuzzWorld(
  tally: Tally,
  {
    approved = everything,
    sections = "",
    policy = policyOf(approved) + sections,
    pace,
    prepare,
    mayDeliveriesFail,
  }: FuzzWorldOptions,
): Promise<FuzzWorld> {
  const namespace = "fuzz";
  const world = await buildWorld({
    policy,
    pace: { ...quickPace, ...pace },
    ...(prepare ? { prepare } : {}),
    namespace,
    receive: "http",
    slack: { rateLimits: "off" },
    compute: { transitionMs: 30 },
    onLog: (line) => {
      const isCaught = mayDeliveriesFail && line.includes('"event":"slack.delivery-failed"');
      if (!isCaught && /"level":"error"|"event":"bug"/.test(line)) tally.crash(line.trim());
    },
  });
  const unhandled = (reason: unknown) =>
    tally.crash(`unhandled: ${reason instanceof Error ? (reason.stack ?? "") : String(reason)}`);
  process.on("unhandledRejection", unhandled);
  const client = await connectRedis(world.redisUrl, "commands", silentLog());
  const key = createKeys(namespace);
  const store = createJournal(client, key);
  const agent = new Agent({ connections: 16, pipelining: 1 });
  const url = new URL(world.slack.app.requestUrl ?? "");

  const requests = async () => store.getMany(await store.recentIds({}, 100_000));
  const close = async () => {
    await agent.close();
    client.disconnect();
    await world.close();
    process.off("unhandledRejection", unhandled);
  };
  return {
    ...world,
    store,
    key,
    client,
    async post(payload) {
      const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
      const seconds = String(Math.floor(Date.now() / 1000));
      const hmac = createHmac("sha256", world.slack.app.signingSecret);
      try {
        const answer = await agent.request({
          origin: url.origin,
          path: url.pathname,
          method: "POST",
          headers: {
            "content-type": "application/x-www-form-urlencoded",
            "x-slack-request-timestamp": seconds,
            "x-slack-signature": `v0=${hmac.update(`v0:${seconds}:${body}`).digest("hex")}`,
          },
          body,
        });
        return { status: answer.statusCode, said: await answer.body.text() };
      } catch (error) {
        return { status: 0, said: String(error) };
      }
    },
    requests,
    audit: async () =>
      (await client.xrange(key("audit"), "-", "+")).map(
        ([, fields]) =>
          JSON.parse(fields[fields.indexOf("record") + 1] ?? "{}") as Record<string, unknown>,
      ),
    until: (fits) =>
      looking(
        async () => (await requests()).find(fits),
        20_000,
        async () => "no request fits",
      ),
    async idle() {
      const left = () => pendingDeliveries(client, key);
      await looking(
        async () => (await left()) === 0 || undefined,
        120_000,
        async () => "what was taken is never handled",
      );
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
