import { execFile } from "node:child_process";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { startWorld, testPolicy } from "../support/start-world.ts";
import { privateRedis } from "../support/with-redis.ts";
import { hears } from "../stories/words.ts";

const password = "not-a-real-password";

/** What compose.yaml makes of Redis: its options, once its script has written its users, in a folder of ours. */
async function composeArgs(): Promise<string[]> {
  const text = await readFile(new URL("../../compose.yaml", import.meta.url), "utf8");
  const { services } = parse(text) as { services: { redis: { command: [string] } } };
  const folder = await mkdtemp(path.join(tmpdir(), "gatehouse-acl-"));
  await writeFile(path.join(folder, "redis-password"), password);
  const script = services.redis.command[0]
    .replaceAll("$$", "$")
    .replaceAll("/run/secrets/", `${folder}/`)
    .replaceAll("/tmp/users.acl", `${folder}/users.acl`)
    .replace("--dir /data", "");
  const [before = "", started = ""] = script.split("exec redis-server ");
  await promisify(execFile)("sh", ["-c", before]);
  return started.replaceAll("\\\n", " ").trim().split(/\s+/);
}

describe("the Redis of compose.yaml", () => {
  it("lets Gatehouse do its work, and neither forget, stop, read along nor change settings (R4)", async () => {
    await using server = await privateRedis(await composeArgs());
    const redisUrl = server.url.replace("//", `//gatehouse:${password}@`);
    await using world = await startWorld({
      redisUrl,
      namespace: "gatehouse",
      policy: `${testPolicy}approvals: [{ operations: ["vm.restart"], required: 1 }]\n`,
    });
    await world.olivia.types("ops", "/vm restart web-2");
    const card = await hears(world.amir, "ops", /Waiting for approval/);
    await world.amir.presses("Approve", { in: card.ts });
    await hears(world.olivia, "ops", /<@U0OLIVIA> Restarted web-2/);
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    expect(await world.ended("vm snapshot")).toMatchObject({ state: "done" });

    const forbidden: [string, ...string[]][] = [
      ["flushall"],
      ["flushdb"],
      ["config", "set", "appendonly", "no"],
      ["config", "get", "requirepass"],
      ["debug", "sleep", "0"],
      ["shutdown", "nosave"],
      ["replicaof", "127.0.0.1", "1"],
      ["acl", "setuser", "gatehouse", "+@all"],
      ["monitor"],
      ["keys", "*"],
      ["client", "kill", "type", "normal"],
      ["module", "list"],
      ["migrate", "127.0.0.1", "1", "x", "0", "10"],
      ["set", "of-somebody-else", "x"],
    ];
    for (const [command, ...args] of forbidden)
      await expect(world.client.call(command, ...args), command).rejects.toThrow(
        /NOPERM|DEBUG command not allowed/,
      );
  });

  it("lets nobody in without the password", async () => {
    await using server = await privateRedis(await composeArgs());
    const stranger = new Redis(server.url, { lazyConnect: true, retryStrategy: () => null });
    stranger.on("error", () => undefined);
    await expect(stranger.get("{gatehouse}:freeze")).rejects.toThrow();
    stranger.disconnect();
  });
});
