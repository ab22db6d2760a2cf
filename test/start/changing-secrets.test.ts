import { writeFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { commands } from "../../src/commands/index.ts";
import { loadConfig } from "../../src/config/config.ts";
import { createLog } from "../../src/log/log.ts";
import { operationsOf } from "../../src/policy/approval-rule.ts";
import { start } from "../../src/start/start.ts";
import { startWorld } from "../support/start-world.ts";
import { privateRedis } from "../support/with-redis.ts";

it(
  "secrets in files are replaced while it runs: Redis, Slack, and the compute service go on with the new ones",
  { timeout: 60_000 },
  async () => {
    await using redis = await privateRedis();
    await using world = await startWorld({ roles: [], redisUrl: redis.url });
    const folder = path.dirname(world.env["GATEHOUSE_CONFIG"] ?? "");
    const write = (name: string, text: string) =>
      writeFileSync(path.join(folder, name), `${text}\n`);
    const login = (word: string) => redis.url.replace("redis://", `redis://gatehouse:${word}@`);
    const names = ["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "COMPUTE_API_KEY", "REDIS_URL"] as const;
    const env: Record<string, string> = { ...world.env };
    for (const name of names) {
      write(name, env[name] ?? "");
      env[name] = "";
      env[`${name}_FILE`] = path.join(folder, name);
    }
    const setPassword = (word: string) =>
      world.client.call(
        "ACL",
        "SETUSER",
        "gatehouse",
        "on",
        "resetpass",
        `>${word}`,
        "~*",
        "&*",
        "+@all",
      );
    await setPassword("word-1");
    write("REDIS_URL", login("word-1"));

    const lines: string[] = [];
    const log = createLog({ level: "info", write: (line) => void lines.push(line) });
    const config = loadConfig({ env, role: "all", operations: operationsOf(commands) });
    const running = await start(config, log, { host: "127.0.0.1", namespace: world.key.namespace });
    const restarted = async (vm: string, writes: number) => {
      const restart = async () => {
        await world.olivia.types("ops", `/vm restart ${vm}`).catch(() => undefined);
        return world.compute.writes().length;
      };
      await expect.poll(restart, { timeout: 15_000, interval: 500 }).toBe(writes);
    };
    try {
      await world.slack.connected();
      await world.compute.called("GET /v1/projects/:id/vms", 4);
      // Somebody put a wrong key there, and then the right one
      write("COMPUTE_API_KEY", "key-of-last-year");
      config.files.get("COMPUTE_API_KEY")?.reread();
      await expect
        .poll(
          async () => {
            await world.olivia.types("ops", "/vm show web-2");
            return JSON.stringify(world.slack.seenBy("olivia"));
          },
          { timeout: 10_000, interval: 200 },
        )
        .toContain("rejected Gatehouse's API key");
      write("COMPUTE_API_KEY", world.compute.apiKey);
      await restarted("web-2", 1);

      // Slack's tokens: the former ones are refused, and the connection breaks
      const { app } = world.slack;
      [app.botToken, app.appToken] = ["xoxb-sandbox-next-year", "xapp-1-sandbox-next-year"];
      write("SLACK_BOT_TOKEN", app.botToken);
      write("SLACK_APP_TOKEN", app.appToken);
      // Redis' password: the connections are cut
      await setPassword("word-2");
      write("REDIS_URL", login("word-2"));
      await world.client.call("CLIENT", "KILL", "USER", "gatehouse");
      world.slack.socketMode.disconnect("cut");
      await restarted("payments/web-1", 2);
      expect(await world.store.freezeState()).toBeUndefined();
      const changed = () =>
        names.filter((name) =>
          lines.some(
            (line) => line.includes("file-changed") && line.includes(`"variable":"${name}"`),
          ),
        );
      await expect.poll(changed, { timeout: 15_000 }).toEqual([...names]);
    } finally {
      await running.close();
    }
    const said = lines.join("");
    for (const secret of ["next-year", "word-1", "word-2", world.compute.apiKey])
      expect(said).not.toContain(secret);
  },
);

it("a new signing secret counts from the next delivery on, and the former one no longer", async () => {
  await using world = await startWorld({ roles: [], receive: "http" });
  const file = path.join(path.dirname(world.env["GATEHOUSE_CONFIG"] ?? ""), "signing-secret");
  writeFileSync(file, world.slack.app.signingSecret);
  const { SLACK_SIGNING_SECRET: _, ...rest } = world.env;
  const env = { ...rest, SLACK_SIGNING_SECRET_FILE: file };
  const log = createLog({ level: "info", write: () => undefined });
  const config = loadConfig({ env, role: "all", operations: operationsOf(commands) });
  const { namespace } = world.key;
  const running = await start(config, log, { host: "127.0.0.1", namespace });
  try {
    const { app } = world.slack;
    app.requestUrl = `http://127.0.0.1:${running.port}/slack/events`;
    const former = app.signingSecret;
    writeFileSync(file, "a-new-signing-secret");
    config.files.get("SLACK_SIGNING_SECRET")?.reread();
    const heard = () => JSON.stringify(world.slack.seenBy("vera"));
    await world.vera.types("ops", "/gatehouse help").catch(() => undefined);
    expect(app.signingSecret).toBe(former);
    expect(heard()).not.toContain("What you can run");
    app.signingSecret = "a-new-signing-secret";
    await world.vera.types("ops", "/gatehouse help");
    await world.vera.until((seen) => JSON.stringify(seen).includes("What you can run"));
  } finally {
    await running.close();
  }
});
