import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ConfigError } from "../../src/config/config-error.ts";
import { readAudit } from "../../src/audit/read-audit.ts";
import { verifyAudit } from "../../src/audit/verify.ts";
import { startWorld, type TestWorld, type TestWorldOptions } from "../support/start-world.ts";
import { until } from "../support/until.ts";
import { type PrivateRedis, privateRedis } from "../support/with-redis.ts";

/** The bot of a second app in the same workspace. */
const secondApp = {
  appId: "A01SECOND",
  botUserId: "U0SECOND",
  botId: "B0SECOND",
  botToken: "xoxb-sandbox-second",
  appToken: "xapp-1-sandbox-second",
};

describe("two installations on one Redis", () => {
  let redis: PrivateRedis;
  let first: TestWorld;
  const beside = (options: TestWorldOptions) => startWorld({ redisUrl: redis.url, ...options });
  const second = (namespace: string, roles: TestWorldOptions["roles"] = ["all"]) =>
    beside({ namespace, roles, slack: { app: secondApp } });
  const refusal = async (starting: Promise<unknown>) => {
    const error: unknown = await starting.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ConfigError);
    return error instanceof ConfigError ? error.problems : [];
  };

  beforeAll(async () => {
    redis = await privateRedis();
    first = await beside({ namespace: "prod" });
  });
  afterAll(async () => {
    await first.close();
    await redis[Symbol.asyncDispose]();
  });

  it("each perform their own changes, with keys and an audit trail of their own", async () => {
    await using other = await second("staging");
    await first.olivia.types("ops", "/vm restart web-2");
    await other.olivia.types("ops", "/vm restart payments/web-1");
    for (const [world, target] of [
      [first, "web-2"],
      [other, "web-1"],
    ] as const) {
      const ended = await world.ended("vm restart");
      expect(ended).toMatchObject({ state: "done", record: { target: { name: target } } });
      const on = { redis: world.client, key: world.key };
      await until(async () => (await verifyAudit(on)).unsealed.count).toBe(0);
      expect(await verifyAudit(on)).toMatchObject({ standing: "intact" });
      const { entries } = await readAudit({ ...on, most: 500 });
      const requests = new Set(entries.flatMap(({ record }) => record["request"] ?? []));
      expect([...requests]).toEqual([ended.record.id]);
    }
    const keys = await first.client.keys("*");
    expect(keys.filter((name) => !/^\{(prod|staging)\}:/.test(name))).toEqual([]);
    expect(new Set(keys.map((name) => name.split(":")[0]))).toEqual(
      new Set(["{prod}", "{staging}"]),
    );
  });

  it("are refused by name in one namespace, whatever the role, until the first one's key is deleted", async () => {
    for (const role of ["all", "gateway", "worker"] as const)
      expect(await refusal(second("prod", [role]))).toEqual([
        expect.stringMatching(
          /^REDIS_NAMESPACE: \{prod\} in this Redis is used by the Slack app A01GATEHOUSE of .+, and this is the app A01SECOND of .+: set REDIS_NAMESPACE .+ delete the key \{prod\}:installation$/,
        ),
      ]);
    const owner = await first.client.getset("{prod}:installation", "{");
    const unreadable =
      /^REDIS_NAMESPACE: \{prod\} .+ a Slack app that can't be read: set .+ delete/;
    expect(await refusal(second("prod"))).toEqual([expect.stringMatching(unreadable)]);
    expect(await first.client.getset("{prod}:installation", owner ?? "")).toBe("{");
    await first.client.del("{prod}:installation");
    await using replacing = await second("prod");
    expect(replacing.processes).toHaveLength(1);
    await first.client.del("{prod}:installation");
  });

  it("aren't mistaken for two when the token of the app was replaced, and a known token needs no Slack", async () => {
    const app = { botToken: "xoxb-sandbox-replaced" };
    const former = await beside({ namespace: "renewed" });
    await former.close();
    await using renewed = await beside({ namespace: "renewed", roles: ["worker"], slack: { app } });
    expect(renewed.processes).toHaveLength(1);
    const unreachable = { SLACK_API_URL: "http://127.0.0.1:9/api/" };
    await renewed.startProcess("worker", unreachable);
  });
});
