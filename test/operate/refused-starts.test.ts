import { once } from "node:events";
import { createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Role } from "../../src/config/config.ts";
import { ConfigError } from "../../src/config/config-error.ts";
import { silentLog } from "../../src/log/log.ts";
import { startWebServer } from "../../src/operate/web-server.ts";
import { startWorld, type TestWorld } from "../support/start-world.ts";
import { privateRedis } from "../support/with-redis.ts";

/** What a ConfigError ends with: 78, so that no supervisor starts it again for ever (process.system.test.ts). */
async function problemsOf(starting: Promise<unknown>): Promise<readonly string[]> {
  const outcome: unknown = await starting.catch((error: unknown) => error);
  expect(outcome).toBeInstanceOf(ConfigError);
  return outcome instanceof ConfigError ? outcome.problems : [];
}

describe("a start that would fail again and again", () => {
  let world: TestWorld;
  beforeAll(async () => {
    world = await startWorld({ roles: [] });
  });
  afterAll(() => world.close());
  const refused = (role: Role, env: Record<string, string>) =>
    problemsOf(world.startProcess(role, env));

  it("is refused without a word to anybody, where its directory can't be written", async () => {
    expect(await refused("gateway", { DATA_DIR: "/dev/null/data" })).toEqual([
      expect.stringMatching(/^DATA_DIR: \/dev\/null\/data can't be written/),
    ]);
    expect(world.slack.calls()).toEqual([]);
    expect(await world.client.keys(world.key("*"))).toEqual([]);
  });

  it("is refused with a revoked token", async () => {
    expect(await refused("gateway", { SLACK_BOT_TOKEN: "xoxb-revoked" })).toEqual([
      "SLACK_BOT_TOKEN: Slack rejected the bot token (invalid_auth); check SLACK_BOT_TOKEN and SLACK_API_URL",
    ]);
  });

  it("is refused with a Redis that forgets, and with a database that Redis hasn't", async () => {
    await using forgetful = await privateRedis(["--appendonly", "no"]);
    expect(await refused("worker", { REDIS_URL: forgetful.url })).toEqual([
      expect.stringMatching(/^REDIS_URL: Redis keeps nothing on disk/),
    ]);
    expect(await refused("worker", { REDIS_URL: `${forgetful.url}/99` })).toEqual([
      expect.stringMatching(/^REDIS_URL: Redis at \S+ has no database 99/),
    ]);
  });

  it("is refused at an address that this machine doesn't have", async () => {
    const host = "203.0.113.7";
    const sentence = `this machine doesn't have that address, ${host}: name one that it has`;
    expect(await refused("worker", { OPS_HOST: host })).toEqual([`OPS_HOST: ${sentence}`]);
    const log = silentLog();
    expect(await problemsOf(startWebServer({ port: 0, host, log }, () => false))).toEqual([
      `HOST: ${sentence}`,
    ]);
  });

  it("is refused in a directory that another process has", async () => {
    const running = await world.startProcess("worker");
    expect(await refused("gateway", { DATA_DIR: world.env["DATA_DIR"] ?? "" })).toEqual([
      expect.stringMatching(/^DATA_DIR: .* is in use by another process/),
    ]);
    await running.close();
  });
});

describe("a start that may go well later", () => {
  it("fails where another process has its port, and says which variable to set", async () => {
    await using world = await startWorld({ roles: [] });
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const taken = other.address();
    const OPS_PORT = String(typeof taken === "object" ? taken?.port : "");
    const outcome: unknown = await world
      .startProcess("worker", { OPS_PORT })
      .catch((error: unknown) => error);
    expect(outcome).not.toBeInstanceOf(ConfigError);
    expect(outcome).toMatchObject({
      message: "OPS_PORT: the port can't be opened: another process has it",
      hint: expect.stringMatching(/^Set OPS_PORT to another one/),
    });
    other.close();
  });

  it("begins though Slack can't be reached, where it is a worker's: probes say what is missing", async () => {
    await using world = await startWorld({ roles: [] });
    const { opsPort } = await world.startProcess("worker", {
      SLACK_API_URL: "http://127.0.0.1:9/api/", // the discard port: nobody listens
    });
    const answer = await fetch(`http://127.0.0.1:${opsPort}/readyz`);
    expect(`${answer.status} ${await answer.text()}`).toMatch(/^503 .*Slack/);
  });
});
