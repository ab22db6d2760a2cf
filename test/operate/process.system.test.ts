import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { freePort } from "../../sandbox/ensure-redis.ts";
import { hears } from "../stories/words.ts";
import { portsOf, startProgram } from "../support/start-program.ts";
import { startWorld, startWorldForPrograms, testPolicy } from "../support/start-world.ts";
import { privateRedis } from "../support/with-redis.ts";
import { until } from "../support/until.ts";

/** Each starts several processes, one after the other. */
describe.concurrent("a process of Gatehouse", () => {
  it("names every problem of its configuration at once, and exits with 78", async () => {
    await using main = startProgram([], { COMPUTE_API_URL: "ftp://nowhere", PORT: "many" });
    expect(await main.ended).toBe(78);
    for (const name of [
      "SLACK_BOT_TOKEN",
      "SLACK_APP_TOKEN",
      "COMPUTE_API_URL",
      "COMPUTE_API_KEY",
      "REDIS_URL",
      "PORT",
    ]) {
      expect(main.output()).toContain(`${name}: `);
    }
  });

  it("refuses a database that Redis hasn't, which only Redis knows", async () => {
    await using world = await startWorld({ policy: testPolicy, roles: [] });
    const env = { ...world.env, REDIS_URL: `${world.redisUrl}/99` };
    await using main = startProgram([], env);
    expect(await main.ended).toBe(78);
    expect(main.output()).toMatch(/REDIS_URL: Redis at \S+ has no database 99/);
  });

  it("says that Redis is full where it can't start for that, and not what Redis calls it", async () => {
    await using world = await startWorldForPrograms();
    await world.client.config("SET", "maxmemory", "1");
    await using main = startProgram([], world.env);
    expect(await main.ended).toBe(1);
    expect(main.output()).toContain(
      "Gatehouse can't start: Redis is full. `node gatehouse.mjs doctor` says what to do.\n",
    );
  });

  it("never says that Redis is back while it has not answered, and gives up", async () => {
    await using world = await startWorldForPrograms();
    await world.ownRedis.stop();
    await using main = startProgram([], world.env);
    expect(await main.ended).toBe(1);
    const about = [...main.output().matchAll(/"event":"(redis\.[\w-]+)"/g)].map(
      ([, event]) => event,
    );
    expect(about).toEqual(["redis.lost", "redis.still-lost"]);
    expect(main.output()).toMatch(/Gatehouse can't start: Redis at \S+ can't be used/);
  });

  it("answers probes, gives figures, and ends with 0 on SIGTERM", async () => {
    await using world = await startWorldForPrograms();
    await using main = startProgram([], world.env);
    const { port } = await portsOf(main);
    const at = (path: string) => fetch(`http://127.0.0.1:${port}${path}`);
    await world.slack.connected();
    expect((await at("/healthz")).status).toBe(200);
    expect((await at("/readyz")).status).toBe(200);
    expect(await (await at("/metrics")).text()).toContain("gatehouse_frozen 0");
    expect(await main.stop()).toBe(0);
    expect(main.output()).not.toContain(world.env["SLACK_BOT_TOKEN"] ?? "none");
    expect(main.output()).toContain('"how":"closed"');
    const [first = ""] = main.output().split("\n");
    expect(JSON.parse(first)).toMatchObject({
      event: "process.starting",
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      node: process.version,
    });
  });

  it("runs as gateway and workers apart, and loses nothing when a worker is replaced", async () => {
    await using world = await startWorldForPrograms({ compute: { transitionMs: 400 } });
    const env = {
      ...world.env,
      DATA_DIR: `${world.env["DATA_DIR"] ?? ""}-${randomBytes(3).toString("hex")}`,
    };
    await using gateway = startProgram(["gateway"], {
      ...env,
      DATA_DIR: `${env.DATA_DIR}-gateway`,
    });
    await using first = startProgram(["worker"], env);
    await Promise.all([gateway.prints(/process.started/), first.prints(/process.started/)]);
    await world.slack.connected();
    await world.olivia.types("ops", "/vm restart web-2");
    await world.compute.called("POST /v1/vms/:id/restart");
    expect(await first.stop()).toBe(0);
    await using second = startProgram(["worker"], env);
    await second.prints(/process.started/);
    await world.olivia.until((seen) => JSON.stringify(seen).includes("Restarted `web-2`"));
    expect(world.compute.writes()).toHaveLength(1);
  });

  it("answers probes and ends on SIGTERM while Slack can't be reached; a worker begins, and needs it for nothing yet", async () => {
    await using world = await startWorldForPrograms();
    const port = await freePort();
    const env = {
      ...world.env,
      SLACK_API_URL: "http://127.0.0.1:9/api/", // the discard port: nobody listens
      OPS_PORT: String(port),
    };
    const probe = (path: string) =>
      fetch(`http://127.0.0.1:${port}${path}`).then(
        async (answer) => `${answer.status} ${await answer.text()}`,
        () => "nothing",
      );
    {
      await using gateway = startProgram(["gateway"], env);
      await until(() => probe("/healthz")).toContain("200 ");
      await until(() => probe("/readyz")).toMatch(/503 .*Slack/);
      expect(await gateway.stop()).toBe(0);
    }
    await using worker = startProgram(["worker"], env);
    await worker.prints(/process.started/);
    expect(await probe("/readyz")).toMatch(/503 .*Slack/);
    expect(await worker.stop()).toBe(0);
  });

  it("reads its policy anew on SIGHUP, however early it comes, and opens no debugger on SIGUSR1", async () => {
    await using world = await startWorldForPrograms();
    const file = world.env["GATEHOUSE_CONFIG"] ?? "";
    await using main = startProgram(["worker"], world.env);
    await main.prints(/process.starting/);
    main.child.kill("SIGHUP");
    await main.prints(/process.started/);
    await main.prints(/process.reloading/);
    await writeFile(file, `${testPolicy}limits: { draftsPerPerson: 3 }\n`);
    main.child.kill("SIGHUP");
    await main.prints(/policy.changed.*limits.draftsPerPerson: 10 → 3/);
    await writeFile(file, "access: nobody\n");
    main.child.kill("SIGHUP");
    await main.prints(/policy.kept.*gatehouse.yml line 1: access must contain/);
    main.child.kill("SIGUSR1");
    await main.prints(/process.signal-ignored.*SIGUSR1/);
    expect(main.output()).not.toMatch(/debugger listening/i);
    expect(await main.stop()).toBe(0);
  });

  it("without gatehouse.yml ends with 78 where others had a policy; else it says so", async () => {
    await using world = await startWorldForPrograms();
    const { GATEHOUSE_CONFIG: file = "", ...env } = world.env;
    const empty = `${env["DATA_DIR"]}-cwd`;
    await mkdir(empty);
    const here = join(empty, "gatehouse.yml");
    const without = { ...env, DATA_DIR: "data" };
    // A DUMP would tell of the order of fields, too, which Redis may change by itself
    const stored = () =>
      Promise.all([
        world.client.hgetall(world.key("policy", "in-force")),
        world.client.xrange(world.key("audit"), "-", "+"),
      ]);
    {
      await using first = startProgram([], without, { cwd: empty });
      await first.prints(/"event":"policy.missing"/);
      expect(first.output()).toContain(
        `"path":"${here}","why":"everyone can view and no one can change anything"`,
      );
      await first.prints(/process.started/);
      await world.slack.connected();
      await world.vera.types("ops", "/gatehouse status");
      await hears(
        world.vera,
        "ops",
        /Policy: gatehouse.yml is missing, so everyone can view and no one can change anything/,
      );
      expect(await stored()).toEqual([{}, []]);
      await writeFile(here, testPolicy);
      first.child.kill("SIGHUP");
      await first.prints(/policy.changed/);
      await until(async () => (await stored())[0]).not.toEqual({});
      expect(await first.stop()).toBe(0);
    }
    await using other = startProgram(["worker"], { ...env, GATEHOUSE_CONFIG: file });
    const { port } = await portsOf(other);
    await rm(here);
    const before = await stored();
    for (const role of ["gateway", "worker"]) {
      await using late = startProgram([role], without, { cwd: empty });
      expect(await late.ended).toBe(78);
      expect(late.output()).toMatch(
        new RegExp(
          `\\n {2}GATEHOUSE_CONFIG: ${here} is missing, and other processes had a policy \\(version \\w{12}\\): put their file there, or name its place in GATEHOUSE_CONFIG\\n`,
        ),
      );
    }
    expect(await stored()).toEqual(before);
    expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200);
  });

  it("ends with 78 where starting again would go round for ever: a revoked token, a Redis that forgets, an address that isn't here", async () => {
    await using world = await startWorldForPrograms();
    await using forgetful = await privateRedis(["--appendonly", "no"]);
    const rows: [env: Record<string, string>, line: RegExp][] = [
      [
        { SLACK_BOT_TOKEN: "xoxb-revoked" },
        /\n {2}SLACK_BOT_TOKEN: Slack rejected the bot token \(invalid_auth\); check SLACK_BOT_TOKEN and SLACK_API_URL\n/,
      ],
      [{ REDIS_URL: forgetful.url }, /\n {2}REDIS_URL: Redis keeps nothing on disk/],
      [
        { OPS_HOST: "203.0.113.7" },
        /\n {2}OPS_HOST: this machine doesn't have that address, 203\.0\.113\.7: name one that it has\n/,
      ],
    ];
    for (const role of ["gateway", "worker"])
      for (const [env, line] of rows) {
        await using main = startProgram([role], { ...world.env, ...env });
        expect(await main.ended, main.output()).toBe(78);
        expect(main.output()).toMatch(line);
      }
    const http = {
      ...world.env,
      SLACK_APP_TOKEN: "",
      SLACK_SIGNING_SECRET: "s".repeat(32),
      PORT: "0",
    };
    await using away = startProgram(["gateway"], { ...http, HOST: "203.0.113.7" });
    expect(await away.ended, away.output()).toBe(78);
    expect(away.output()).toMatch(/\n {2}HOST: this machine doesn't have that address/);
  });

  it("opens PORT and API_PORT on HOST alone", async () => {
    await using world = await startWorldForPrograms();
    const http = { SLACK_APP_TOKEN: "", SLACK_SIGNING_SECRET: "s".repeat(32), PORT: "0" };
    await using main = startProgram(["gateway"], {
      ...world.env,
      ...http,
      API_PORT: "0",
      // Loopback, too, and not what others of this machine use
      HOST: "127.0.0.2",
    });
    const { port, opsPort, apiPort } = await portsOf(main);
    const answers = (host: string, at = 0) =>
      fetch(`http://${host}:${at}/`).then(
        () => true,
        () => false,
      );
    expect(await Promise.all([answers("127.0.0.2", port), answers("127.0.0.2", apiPort)])).toEqual([
      true,
      true,
    ]);
    expect(await Promise.all([answers("127.0.0.1", port), answers("127.0.0.1", apiPort)])).toEqual([
      false,
      false,
    ]);
    expect(await answers("127.0.0.1", opsPort)).toBe(true);
  });

  it("refuses a directory that it can't write, or that another process has, before it says anything to anybody", async () => {
    await using world = await startWorldForPrograms();
    await using first = startProgram(["worker"], world.env);
    await using barred = startProgram(["gateway"], { ...world.env, DATA_DIR: "/dev/null/data" });
    expect(await barred.ended).toBe(78);
    expect(barred.output()).toMatch(/\n {2}DATA_DIR: \/dev\/null\/data can't be written/);
    await first.prints(/process.started/);
    await using second = startProgram(["gateway"], world.env);
    expect(await second.ended).toBe(78);
    expect(second.output()).toMatch(/DATA_DIR: .* is in use by another process/);
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const taken = other.address();
    const OPS_PORT = String(typeof taken === "object" ? taken?.port : "");
    await using third = startProgram(["worker"], {
      ...world.env,
      DATA_DIR: `${world.env["DATA_DIR"]}-3`,
      OPS_PORT,
    });
    expect(await third.ended).toBe(1);
    expect(third.output()).toContain(
      "OPS_PORT: the port can't be opened: another process has it. Set OPS_PORT to another one",
    );
    other.close();
  });
});
