import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { silentLog } from "../../src/log/log.ts";
import { checkRedis } from "../../src/redis/check.ts";
import { connectRedis, createKeys } from "../../src/redis/redis.ts";
import { erasePerson } from "../../src/operate/erase-person.ts";
import { runDoctor } from "../../src/cli/doctor.ts";
import { policyWith, startWorld } from "../support/start-world.ts";
import { composeRedis } from "../support/compose.ts";
import { hears } from "../stories/words.ts";
import { handedToPrograms } from "../../src/features/index.ts";

describe("the Redis of compose.yaml", () => {
  it("gets no secret that Compose would have to copy into a file system that is read-only", async () => {
    const text = await readFile(new URL("../../compose.yaml", import.meta.url), "utf8");
    const { secrets = {} } = parse(text, { merge: true }) as {
      secrets?: Record<string, { environment?: string }>;
    };
    const copied = Object.keys(secrets).filter((name) => secrets[name]?.environment !== undefined);
    expect(copied).toEqual([]);
  });

  it("lets Gatehouse do its work, and neither forget, stop, read along nor change settings (R4)", async () => {
    await using server = await composeRedis();
    const redisUrl = server.url;
    await using world = await startWorld({
      redisUrl,
      namespace: "gatehouse",
      policy: policyWith({}, 'approvals: [{ operations: ["vm.restart"], required: 1 }]\n'),
    });
    await world.olivia.types("ops", "/vm restart web-2");
    const card = await hears(world.amir, "ops", /Waiting for approval/);
    await world.amir.presses("Approve", { in: card.ts });
    await hears(world.olivia, "ops", /Restarted web-2 in/);
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    expect(await world.ended("vm snapshot")).toMatchObject({ state: "done" });

    // Who looks after it works with the same user
    let said = "";
    const write = (text: string) => void (said += text);
    expect(await runDoctor([], { ...handedToPrograms, env: world.env, write }), said).toBe(0);
    expect(said).toContain("✓ its user may write Gatehouse's keys");

    await world.client.set(world.key("notice", "welcome"), "Hello <@U0LEFT>");
    const erasure = {
      redis: world.client,
      key: world.key,
      person: "U0LEFT",
      who: "ada",
      why: "left",
    };
    expect(await erasePerson(erasure)).toMatchObject({ pseudonym: "erased-1", keys: 1 });

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
    await using server = await composeRedis();
    const stranger = new Redis(server.port, { lazyConnect: true, retryStrategy: () => null });
    stranger.on("error", () => undefined);
    await expect(stranger.get("{gatehouse}:freeze")).rejects.toThrow(/NOAUTH/);
    stranger.disconnect();
  });

  it("keeps what scripts wrote through a kill: it replays its file as the user default (redis/redis#14545)", async () => {
    await using server = await composeRedis();
    const before = await connectRedis(server.url, "commands", silentLog());
    const key = createKeys();
    for (let n = 0; n < 100; n += 1) {
      const both = "redis.call('SET', KEYS[1], ARGV[1]) redis.call('SADD', KEYS[2], ARGV[1])";
      await before.eval(both, 2, key("one", n), key("all"), n);
      await before.multi().rpush(key("list"), n).incr(key("count")).exec();
    }
    before.disconnect();
    await server.kill();
    await server.start();
    const after = await connectRedis(server.url, "commands", silentLog());
    const kept = await Promise.all([
      after.get(key("one", 99)),
      after.scard(key("all")),
      after.llen(key("list")),
      after.get(key("count")),
    ]);
    after.disconnect();
    expect(kept).toEqual(["99", 100, 100, "100"]);
  });

  it.each([
    "user default off",
    "user default off ~* &* +@all -eval",
    "user default off ~x:* &* +@all",
  ])("is refused at the start where it could drop what scripts wrote: `%s`", async (line) => {
    await using server = await composeRedis((users) => users.replace(/user default [^"]*/, line));
    const redis = await connectRedis(server.url, "commands", silentLog());
    expect(await checkRedis(redis, { allowVolatile: false })).toMatchObject({
      kind: "volatile",
      sentence: expect.stringContaining("`user default off ~* &* +@all`"),
      allowed: false,
    });
    redis.disconnect();
  });

  it("is enough as it is, and where it may not be asked the start says what to look at", async () => {
    await using server = await composeRedis();
    const redis = await connectRedis(server.url, "commands", silentLog());
    expect(await checkRedis(redis, { allowVolatile: false })).toEqual({ kind: "ok" });
    redis.disconnect();
    await using other = await composeRedis((users) => users.replace("+acl|getuser", ""));
    const mute = await connectRedis(other.url, "commands", silentLog());
    expect(await checkRedis(mute, { allowVolatile: false })).toEqual({
      kind: "unchecked",
      sentence: expect.stringContaining("user default off ~* &* +@all"),
    });
    mute.disconnect();
  });
});
