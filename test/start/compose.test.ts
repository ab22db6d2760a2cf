import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { verifyAudit } from "../../src/audit/verify.ts";
import { root } from "../house/sources.ts";
import { hears } from "../stories/words.ts";
import { compileCache } from "../support/compile-cache.ts";
import { composeRedis, composeServices, filledIn } from "../support/compose.ts";
import { startWorld } from "../support/start-world.ts";

it("what compose.yaml starts works with the example policy, and forgets nothing when its Redis is killed", async () => {
  await using redis = await composeRedis();
  await promisify(execFile)("sh", ["-c", redis.healthcheck]);
  await using world = await startWorld({ roles: [], redisUrl: redis.url, namespace: "gatehouse" });
  const { redis: _, ...services } = await composeServices();
  expect(Object.keys(services)).toEqual(["gateway", "worker-1", "worker-2"]);
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-compose-data-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const filled = { ...world.env, REDIS_PASSWORD: redis.password, OPS_PORT: "0" };
  const started = Object.entries(services).map(async ([name, { command, environment = {} }]) => {
    // Where it is in a container, and where it is here
    const places = {
      "@redis:6379": `@127.0.0.1:${redis.port}`,
      "/config/gatehouse.yml": path.join(root, "gatehouse.example.yml"),
      "/data": path.join(folder, name),
    };
    const env = Object.fromEntries(
      Object.entries(environment).map(([variable, value]) => {
        let here = filledIn(value, filled);
        for (const [there, place] of Object.entries(places)) here = here.replace(there, place);
        return [variable, here];
      }),
    );
    const [program, ...words] = command;
    expect(program).toBe("node");
    const child = spawn(process.execPath, words, {
      cwd: root,
      env: { ...compileCache, PATH: process.env["PATH"], ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const ended = once(child, "exit");
    stack.defer(async () => {
      child.kill("SIGKILL");
      await ended;
    });
    let said = "";
    await new Promise<void>((resolve, reject) => {
      for (const stream of [child.stdout, child.stderr])
        stream.on("data", (chunk: Buffer) => {
          said += chunk.toString();
          if (said.includes('"event":"process.started"')) resolve();
        });
      void ended.then(() => reject(new Error(`${name}: ${said.slice(-2000)}`)));
    });
  });
  await Promise.all(started);
  await world.slack.connected();
  await world.olivia.types("ops", "/vm restart web-2");
  await hears(world.olivia, "ops", /<@U0OLIVIA> Restarted web-2/);
  const kept = async () => ({
    records: await world.client.xlen(world.key("audit")),
    requests: (await world.store.recentIds({}, 200)).length,
    isIntact: (await verifyAudit({ redis: world.client, key: world.key })).is,
  });
  await expect.poll(async () => (await kept()).isIntact).toBe("intact");
  const before = await kept();
  expect(before.requests).toBe(1);
  await redis.kill();
  await redis.start();
  await expect.poll(() => world.client.ping().catch(() => ""), { timeout: 10_000 }).toBe("PONG");
  const after = await kept();
  expect(after.records).toBeGreaterThanOrEqual(before.records);
  expect(after).toMatchObject({ requests: 1, isIntact: "intact" });
  await world.olivia.types("ops", "/vm snapshot db-1 nightly");
  expect(await world.ended("vm snapshot")).toMatchObject({ state: "done" });
  expect(await world.client.exists(world.key("freeze"))).toBe(0);
}, 90_000);
