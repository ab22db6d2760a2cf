import { mkdir } from "node:fs/promises";
import path from "node:path";
import { Redis } from "ioredis";
import { expect, it } from "vitest";
import { apiEnv, deployJob, deployPolicy } from "../features/proposals/deploy-job.ts";
import { startWorld } from "../support/start-world.ts";
import { until } from "../support/until.ts";

it("a process whose Redis is full, can't write to its disk, or became a replica says so in gatehouse_ready, and a person's freeze is told from Gatehouse's own", async () => {
  await using world = await startWorld({ hasOwnRedis: true });
  const admin = new Redis(world.redisUrl);
  const opsPort = world.processes[0]?.opsPort;
  async function figures(): Promise<ReadonlyMap<string, string>> {
    const text = await (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text();
    return new Map(
      text.split("\n").map((line) => [line.split(" ")[0] ?? "", line.split(" ")[1] ?? ""]),
    );
  }
  const notReady = async () =>
    [...(await figures())]
      .filter(([name, value]) => name.startsWith("gatehouse_ready{") && value === "0")
      .map(([name]) => name);
  const outages: [reason: string, begin: () => Promise<unknown>, end: () => Promise<unknown>][] = [
    [
      "redis-full",
      () => admin.config("SET", "maxmemory", "1mb"),
      () => admin.config("SET", "maxmemory", "0"),
    ],
    [
      "redis-disk",
      async () => {
        // A folder where the snapshot belongs: it can't be put there, and Redis takes no more writes
        await mkdir(path.join(world.redis?.dir ?? "", "dump.rdb", "taken"), { recursive: true });
        await admin.config("SET", "save", "3600 1");
        await admin.bgsave();
        await until(() => admin.info("persistence")).toContain("rdb_last_bgsave_status:err");
      },
      () => admin.config("SET", "save", ""),
    ],
    ["redis-read-only", () => admin.replicaof("127.0.0.1", 1), () => admin.replicaof("NO", "ONE")],
  ];
  try {
    await until(notReady).toEqual([]);
    for (const [reason, begin, end] of outages) {
      await begin();
      await until(notReady).toEqual([`gatehouse_ready{reason="${reason}"}`]);
      const answer = await fetch(`http://127.0.0.1:${opsPort}/readyz`);
      expect(answer.status).toBe(503);
      await end();
      await until(notReady).toEqual([]);
    }
    const frozen = async () => {
      const all = await figures();
      return [all.get("gatehouse_frozen"), all.get("gatehouse_frozen_by_person")];
    };
    expect(await frozen()).toEqual(["0", "0"]);
    await world.ada.types("ops", "/gatehouse freeze an upgrade");
    await until(frozen).toEqual(["1", "1"]);
  } finally {
    admin.disconnect();
  }
});

it("the API is ready while Slack is away, takes calls then, and isn't where Redis takes no writes", async () => {
  await using world = await startWorld({
    hasOwnRedis: true,
    env: apiEnv,
    policy: deployPolicy(),
  });
  const [gateway] = world.processes;
  const readyAt = async (port: number | undefined) => {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
    return `${answer.status} ${await answer.text()}`;
  };
  await until(() => readyAt(gateway?.opsPort)).toContain("200 ");
  expect(await readyAt(gateway?.apiPort)).toContain("200 ");
  world.slack.weather.add({ method: "*", kind: "server-error" });
  world.slack.socketMode.disconnect("cut");
  await until(() => readyAt(gateway?.opsPort)).toMatch(/^503 .*Slack/);
  expect(await readyAt(gateway?.apiPort)).toContain("200 ");
  expect((await deployJob(world).proposes("vm snapshot db-1 nightly")).status).toBe(202);
  const admin = new Redis(world.redisUrl);
  await admin.config("SET", "maxmemory", "1mb");
  await until(() => readyAt(gateway?.apiPort)).toBe('503 {"ok":false,"problem":"redis-full"}\n');
  await admin.config("SET", "maxmemory", "0");
  await until(() => readyAt(gateway?.apiPort)).toContain("200 ");
  admin.disconnect();
});
