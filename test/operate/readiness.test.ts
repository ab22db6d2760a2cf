import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { Redis } from "ioredis";
import { expect, it } from "vitest";
import { root } from "../structure/sources.ts";
import { compileCache } from "../support/compile-cache.ts";
import { startWorld, usualPolicy } from "../support/start-world.ts";
import { privateRedis } from "../support/with-redis.ts";

it("a process whose Redis is full, can't write to its disk, or became a replica says so in gatehouse_ready, and a person's freeze is told from Gatehouse's own", async () => {
  await using redis = await privateRedis();
  await using world = await startWorld({ roles: [], policy: usualPolicy, redisUrl: redis.url });
  const admin = new Redis(redis.url);
  const main = spawn(process.execPath, ["gatehouse.mjs"], {
    cwd: root,
    env: { ...world.env, ...compileCache, PATH: "", OPS_PORT: "0" },
    stdio: "pipe",
  });
  const ended = once(main, "exit");
  let said = "";
  for (const stream of [main.stdout, main.stderr])
    stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const portIn = () => /"event":"process.started".*?"opsPort":(\d+)/.exec(said)?.[1];
  async function figures(): Promise<ReadonlyMap<string, string>> {
    const text = await (await fetch(`http://127.0.0.1:${portIn()}/metrics`)).text();
    return new Map(
      text.split("\n").map((line) => [line.split(" ")[0] ?? "", line.split(" ")[1] ?? ""]),
    );
  }
  const notReady = async () =>
    [...(await figures())]
      .filter(([name, value]) => name.startsWith("gatehouse_ready{") && value === "0")
      .map(([name]) => name);
  const soon = { timeout: 10_000, interval: 50 };
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
        await mkdir(path.join(redis.dir, "dump.rdb", "taken"), { recursive: true });
        await admin.config("SET", "save", "3600 1");
        await admin.bgsave();
        await expect
          .poll(() => admin.info("persistence"), soon)
          .toContain("rdb_last_bgsave_status:err");
      },
      () => admin.config("SET", "save", ""),
    ],
    ["redis-read-only", () => admin.replicaof("127.0.0.1", 1), () => admin.replicaof("NO", "ONE")],
  ];
  try {
    await expect.poll(portIn, { timeout: 20_000, interval: 50, message: said }).toBeDefined();
    await expect.poll(notReady, soon).toEqual([]);
    for (const [reason, begin, end] of outages) {
      await begin();
      await expect.poll(notReady, soon).toEqual([`gatehouse_ready{reason="${reason}"}`]);
      const answer = await fetch(`http://127.0.0.1:${portIn()}/readyz`);
      expect(answer.status).toBe(503);
      await end();
      await expect.poll(notReady, soon).toEqual([]);
    }
    const frozen = async () => {
      const all = await figures();
      return [all.get("gatehouse_frozen"), all.get("gatehouse_frozen_by_person")];
    };
    expect(await frozen()).toEqual(["0", "0"]);
    await world.ada.types("ops", "/gatehouse freeze an upgrade");
    await expect.poll(frozen, soon).toEqual(["1", "1"]);
  } finally {
    admin.disconnect();
    main.kill("SIGKILL");
    await ended;
  }
}, 60_000);
