import { createHmac } from "node:crypto";
import { Agent } from "undici";
import type { StoredRequest } from "../../src/core/request/stored-request.ts";
import { auditOf } from "../core/asking.ts";
import type { Tally } from "./fuzzed.ts";
import { type Pace, usualPace } from "../../src/config/policy-schema.ts";
import { countPendingDeliveries } from "../support/pending-deliveries.ts";
import {
  policyWith,
  startWorld,
  testPace,
  type TestWorld,
  type TestWorldOptions,
} from "../support/start-world.ts";
import { until } from "../support/until.ts";

/** Every change waits for an approval, so nothing may ever reach the service unapproved. */
const everything = ["*.*"];

const policyOf = (approved: readonly string[]) =>
  policyWith(
    { sharedChannels: undefined },
    `approvals:
  - { operations: ${JSON.stringify(approved)}, required: 1, expires: 1h }
limits: { requestsPerMinute: 10000, draftsPerPerson: 10000, destructivePerHour: 10000 }
`,
  );

/** Fast, except for what would only interrupt. */
const quickPace: Pace = {
  ...testPace,
  editMs: usualPace.editMs,
  peopleCacheMs: usualPace.peopleCacheMs,
  inventoryRefreshMs: usualPace.inventoryRefreshMs,
};

/** A whole Gatehouse in this process that Slack reaches over HTTP, and somebody who knows its signing secret. */
export interface FuzzWorld extends TestWorld {
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
  prepare?: TestWorldOptions["prepare"];
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
  const world = await startWorld({
    hasOwnRedis: true,
    policy,
    pace: { ...quickPace, ...pace },
    ...(prepare ? { prepare } : {}),
    receive: "http",
    compute: { transitionMs: 30 },
    onLog: (line) => {
      const isCaught = mayDeliveriesFail && line.includes('"event":"slack.delivery-failed"');
      if (!isCaught && /"level":"error"|"event":"bug"/.test(line)) tally.crash(line.trim());
    },
  });
  const unhandled = (reason: unknown) =>
    tally.crash(`unhandled: ${reason instanceof Error ? (reason.stack ?? "") : String(reason)}`);
  process.on("unhandledRejection", unhandled);
  const { client, key, store } = world;
  const agent = new Agent({ connections: 16, pipelining: 1 });
  const url = new URL(world.slack.app.requestUrl ?? "");

  const requests = async () => store.getMany(await store.recentIds({}, 100_000));
  const pendingDeliveries = countPendingDeliveries(client, key);
  const close = async () => {
    await agent.close();
    await world.close();
    process.off("unhandledRejection", unhandled);
  };
  return {
    ...world,
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
    audit: () => auditOf(client, key("audit")),
    until: (fits) => until(async () => (await requests()).find(fits)),
    async idle() {
      await until(async () => (await pendingDeliveries()) === 0 || undefined);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
