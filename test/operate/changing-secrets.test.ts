import { writeFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { hears, wordsOf } from "../stories/words.ts";
import { startWorld, testPolicy } from "../support/start-world.ts";
import { privateRedis } from "../support/with-redis.ts";
import { until } from "../support/until.ts";

it("secrets in files are replaced while it runs: Redis, Slack, and the compute service go on with the new ones", async () => {
  await using redis = await privateRedis();
  await using world = await startWorld({ roles: [], redisUrl: redis.url });
  const folder = path.dirname(world.env["GATEHOUSE_CONFIG"] ?? "");
  const write = (name: string, text: string) => writeFileSync(path.join(folder, name), `${text}\n`);
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

  const running = await world.startProcess("all", env);
  const { config } = running;
  /** Asks again where the answer is another one than a request: that Redis is still away, say. */
  const restarted = async (vm: string) => {
    const name = vm.split("/").at(-1);
    const isAsked = async () => {
      const requests = await world.store.getMany(await world.store.recentIds({}, 50));
      return requests.some(({ record }) => record.target.name === name);
    };
    const seen = () => world.olivia.seesChannel("ops").messages;
    await until(async () => {
      const before = seen().length;
      await world.olivia.types("ops", `/vm restart ${vm}`);
      await until(
        async () => seen().length > before || (await isAsked()),
        () => seen().slice(-3).map(wordsOf).join("\n"),
      );
      return isAsked();
    });
    const paths = () => world.compute.writes().map((call) => call.path);
    await until(paths).toContainEqual(expect.stringContaining(`${name}/restart`));
  };
  await world.slack.connected();
  await world.compute.called("GET /v1/projects/:id/vms", 4);
  // Somebody empties the file: the former key stays
  write("COMPUTE_API_KEY", "");
  config.files.get("COMPUTE_API_KEY")?.reread();
  await world.olivia.types("ops", "/vm show web-2");
  expect(world.lines.join("")).toMatch(/"config.file-unusable".*"variable":"COMPUTE_API_KEY"/);
  // Somebody puts a wrong key there, and then the right one
  write("COMPUTE_API_KEY", "key-of-last-year");
  config.files.get("COMPUTE_API_KEY")?.reread();
  await world.olivia.types("ops", "/vm show web-2");
  await hears(world.olivia, "ops", /rejected Gatehouse's API key/);
  write("COMPUTE_API_KEY", world.compute.apiKey);
  await restarted("web-2");

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
  await world.slack.connected();
  await until(async () => (await fetch(`http://127.0.0.1:${running.opsPort}/readyz`)).status).toBe(
    200,
  );
  await restarted("payments/web-1");
  expect(await world.store.freezeState()).toBeUndefined();
  const changed = () =>
    names.filter((name) =>
      world.lines.some(
        (line) => line.includes("file-changed") && line.includes(`"variable":"${name}"`),
      ),
    );
  await until(changed).toEqual([...names]);
  await running.close();
  const said = world.lines.join("");
  for (const secret of ["next-year", "word-1", "word-2", world.compute.apiKey])
    expect(said).not.toContain(secret);
});

it("a key and a token that are rotated again and again under load lose nothing: every restart is done once", async () => {
  const names = Array.from({ length: 16 }, (_, n) => `vm-0000-${String(n).padStart(3, "0")}`);
  await using world = await startWorld({
    roles: [],
    policy: `${testPolicy}limits: { requestsPerMinute: 1000 }\n`,
    compute: { world: { projects: 1, vmsPerProject: 16 } },
  });
  const folder = path.dirname(world.env["GATEHOUSE_CONFIG"] ?? "");
  const env: Record<string, string> = { ...world.env };
  for (const name of ["COMPUTE_API_KEY", "SLACK_BOT_TOKEN"]) {
    writeFileSync(path.join(folder, name), env[name] ?? "");
    env[name] = "";
    env[`${name}_FILE`] = path.join(folder, name);
  }
  await world.startProcess("all", env);
  await world.slack.connected();
  const { keys } = world.compute;
  for (const [n, name] of names.entries()) {
    await world.olivia.types("ops", `/vm restart ${name}`);
    if (n % 4 !== 2) continue;
    // The new one is accepted, then it stands in the file; the one before the last ends. A token ends at once
    keys.add(`key-${n}`);
    writeFileSync(path.join(folder, "COMPUTE_API_KEY"), `key-${n}`);
    const [former = ""] = keys;
    if (keys.size > 2) keys.delete(former);
    writeFileSync(path.join(folder, "SLACK_BOT_TOKEN"), `xoxb-token-${n}`);
    world.slack.app.botToken = `xoxb-token-${n}`;
  }
  const ends = async () => {
    const requests = await world.store.getMany(await world.store.recentIds({}, 100));
    return requests.map(({ record, state }) => `${record.target.id} ${state}`).toSorted();
  };
  const told = () => world.olivia.seesChannel("ops").messages.map(wordsOf).join("\n");
  await until(ends, told).toEqual(names.map((name) => `${name} done`));
  const sent = world.compute.writes().map(({ path: where, effect }) => `${where} ${effect}`);
  expect(sent.toSorted()).toEqual(names.map((name) => `/v1/vms/${name}/restart true`));
  expect(await world.store.freezeState()).toBeUndefined();
});

it("a new signing secret counts from the next delivery on, and the former one no longer", async () => {
  await using world = await startWorld({ roles: [], receive: "http" });
  const file = path.join(path.dirname(world.env["GATEHOUSE_CONFIG"] ?? ""), "signing-secret");
  writeFileSync(file, world.slack.app.signingSecret);
  const env = { SLACK_SIGNING_SECRET: "", SLACK_SIGNING_SECRET_FILE: file };
  const { config } = await world.startProcess("all", env);
  const { app } = world.slack;
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
});
