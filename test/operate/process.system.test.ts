import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commitOf } from "../../src/config/version.ts";
import { freePort } from "../../sandbox/ensure-redis.ts";
import { hears } from "../stories/words.ts";
import { portsOf, type Program, startProgram } from "../support/start-program.ts";
import { type ProgramWorld, startWorldForPrograms, testPolicy } from "../support/start-world.ts";
import { until } from "../support/until.ts";

const secrets = ["SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET", "COMPUTE_API_KEY"];

/** The same environment, with each secret in a file of its own. */
async function inFiles({ env }: ProgramWorld): Promise<Record<string, string>> {
  const folder = path.dirname(env["GATEHOUSE_CONFIG"] ?? "");
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (!secrets.includes(name)) result[name] = value;
    else {
      const file = path.join(folder, name.toLowerCase());
      await writeFile(file, value, { mode: 0o600 });
      result[`${name}_FILE`] = file;
    }
  }
  return result;
}

/** One process, from its start to its end. */
describe("a process of Gatehouse", () => {
  let world: ProgramWorld;
  let main: Program;
  let ports: Awaited<ReturnType<typeof portsOf>>;
  beforeAll(async () => {
    world = await startWorldForPrograms({ receive: "http" });
    // Loopback, too, and not what others of this machine use
    const env = { ...(await inFiles(world)), API_PORT: "0", HOST: "127.0.0.2" };
    main = startProgram([], env);
    await main.prints(/process.starting/);
    main.child.kill("SIGHUP");
    ports = await portsOf(main);
    world.slack.app.requestUrl = `http://127.0.0.2:${ports.port}/slack/events`;
  });
  afterAll(async () => {
    await main[Symbol.asyncDispose]();
    await world.close();
  });

  it("reads its policy anew on SIGHUP, however early it comes, and opens no debugger on SIGUSR1", async () => {
    const file = world.env["GATEHOUSE_CONFIG"] ?? "";
    await main.prints(/process.reloading/);
    await writeFile(file, `${testPolicy}limits: { draftsPerPerson: 3 }\n`);
    main.child.kill("SIGHUP");
    await main.prints(/policy.changed.*limits.draftsPerPerson: 10 → 3/);
    await writeFile(file, `${testPolicy}approvals: [{ operations: ["*"], required: 0 }]\n`);
    main.child.kill("SIGHUP");
    await main.prints(/policy.warning.*lets vm.restore and project.delete run without approval/);
    await writeFile(file, "access: nobody\n");
    main.child.kill("SIGHUP");
    await main.prints(/policy.kept.*gatehouse.yml line 1: access must contain/);
    await writeFile(file, testPolicy);
    main.child.kill("SIGUSR1");
    await main.prints(/process.signal-ignored.*SIGUSR1/);
    expect(main.output()).not.toMatch(/debugger listening/i);
  });

  it("answers probes and gives figures on OPS_PORT, and opens PORT and API_PORT on HOST alone", async () => {
    const at = (host: string, port = 0, where = "/") =>
      fetch(`http://${host}:${port}${where}`).then(
        async (answer) => `${answer.status} ${await answer.text()}`,
        () => "nothing",
      );
    expect(await at("127.0.0.1", ports.opsPort, "/healthz")).toMatch(/^200 /);
    await until(() => at("127.0.0.1", ports.opsPort, "/readyz")).toMatch(/^200 /);
    expect(await at("127.0.0.1", ports.opsPort, "/metrics")).toContain("gatehouse_frozen 0");
    for (const port of [ports.port, ports.apiPort]) {
      expect(await at("127.0.0.2", port)).not.toBe("nothing");
      expect(await at("127.0.0.1", port)).toBe("nothing");
    }
  });

  it("shows its secrets neither in its environment nor among its words nor in its log, where they come from files", async () => {
    const environment = await readFile(`/proc/${main.child.pid}/environ`, "latin1");
    const words = await readFile(`/proc/${main.child.pid}/cmdline`, "latin1");
    expect(environment).toContain("COMPUTE_API_KEY_FILE=");
    expect(words).toContain("gatehouse.mjs");
    for (const name of secrets) {
      const secret = world.env[name];
      if (secret === undefined) throw new Error(`there is no ${name}`);
      for (const text of [environment, words, main.output()])
        expect(text.includes(secret), name).toBe(false);
    }
  });

  it("says first which Gatehouse on which Node.js it is", () => {
    const [first = ""] = main.output().split("\n");
    expect(JSON.parse(first)).toMatchObject({
      event: "process.starting",
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      ...(commitOf() && { commit: commitOf() }),
      node: process.version,
    });
  });

  it("ends with 0 on SIGTERM while a request runs, which the next process brings to its end", async () => {
    await world.olivia.types("ops", "/vm restart web-2");
    await world.compute.called("POST /v1/vms/:id/restart");
    expect(await main.stop()).toBe(0);
    expect(main.output()).toContain('"event":"process.stopped"');
    await world.startProcess("all");
    await world.olivia.until((seen) => JSON.stringify(seen).includes("Restarted `web-2`"));
    expect(world.compute.writes()).toHaveLength(1);
  });
});

describe("a process of Gatehouse that can't start", () => {
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

  it("exits with 1 and says that Redis is full, and not what Redis calls it", async () => {
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
    await expect(world.startProcess("all")).rejects.toThrow(/Redis at \S+ can't be used/);
    const events = world.lines.map((line) => (JSON.parse(line) as { event: string }).event);
    expect(events.filter((event) => event.startsWith("redis."))).toEqual([
      "redis.lost",
      "redis.still-lost",
    ]);
  });

  it("is a worker whose token is revoked, which it learns while it runs: it exits with 78", async () => {
    await using world = await startWorldForPrograms();
    await using main = startProgram(["worker"], { ...world.env, SLACK_BOT_TOKEN: "xoxb-revoked" });
    expect(await main.ended, main.output()).toBe(78);
    expect(main.output()).toMatch(
      /\n {2}SLACK_BOT_TOKEN: Slack rejected the bot token \(invalid_auth\); check SLACK_BOT_TOKEN and SLACK_API_URL\n/,
    );
  });

  it("is a gateway that can't reach Slack: it answers probes, and ends with 0 on SIGTERM", async () => {
    await using world = await startWorldForPrograms();
    const port = await freePort();
    await using gateway = startProgram(["gateway"], {
      ...world.env,
      SLACK_API_URL: "http://127.0.0.1:9/api/", // the discard port: nobody listens
      OPS_PORT: String(port),
    });
    const probe = (where: string) =>
      fetch(`http://127.0.0.1:${port}${where}`).then(
        async (answer) => `${answer.status} ${await answer.text()}`,
        () => "nothing",
      );
    await gateway.prints(/process.starting/);
    await until(() => probe("/healthz"), gateway.output).toContain("200 ");
    await until(() => probe("/readyz"), gateway.output).toMatch(/503 .*Slack/);
    expect(await gateway.stop()).toBe(0);
  });

  it("is without gatehouse.yml where others had a policy, and exits with 78; else it says so and starts", async () => {
    await using world = await startWorldForPrograms();
    const { GATEHOUSE_CONFIG: _, ...rest } = world.env;
    const empty = `${rest["DATA_DIR"]}-cwd`;
    await mkdir(empty);
    const here = path.join(empty, "gatehouse.yml");
    const env = { ...rest, DATA_DIR: "data" };
    // A DUMP would tell of the order of fields, too, which Redis may change by itself
    const stored = () =>
      Promise.all([
        world.client.hgetall(world.key("policy", "in-force")),
        world.client.xrange(world.key("audit"), "-", "+"),
      ]);
    await using first = startProgram([], env, { cwd: empty });
    await first.prints(/"event":"policy.missing"/);
    expect(first.output()).toContain(
      `"path":"${here}","why":"everyone can view and no one can change anything"`,
    );
    const { opsPort } = await portsOf(first);
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
    await rm(here);
    const [before] = await stored();
    await using late = startProgram(["worker"], { ...env, DATA_DIR: "late" }, { cwd: empty });
    expect(await late.ended).toBe(78);
    expect(late.output()).toMatch(
      new RegExp(
        `\\n {2}GATEHOUSE_CONFIG: ${here} is missing, and other processes had a policy \\(version \\w{12}\\): put their file there, or name its place in GATEHOUSE_CONFIG\\n`,
      ),
    );
    const [after] = await stored();
    expect(after).toEqual(before);
    expect((await fetch(`http://127.0.0.1:${opsPort}/readyz`)).status).toBe(200);
  });
});

it("a process outlives what reads its log: work goes on, and status and metrics say that lines are lost", async () => {
  await using world = await startWorldForPrograms();
  await using main = startProgram([], world.env);
  const { opsPort } = await portsOf(main);
  await world.slack.connected(1);
  main.child.stdout?.destroy();
  main.child.stderr?.destroy();
  await world.olivia.types("ops", "/vm restart web-2");
  await world.olivia.until((all) => JSON.stringify(all).includes("Restarted `web-2`"));
  const metrics = async () => (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text();
  await until(metrics).toMatch(/^gatehouse_log_lines_lost_total [1-9]\d*$/m);
  const status = async () => {
    await world.ada.types("ops", "/gatehouse status");
    return JSON.stringify(world.ada.seesChannel("ops").messages);
  };
  await until(status).toMatch(/\*Log\*: that of the process on \S+ is lost \(\d+ lines?\)/);
  expect(main.child.exitCode).toBeNull();
  expect(await main.stop()).toBe(0);
});
