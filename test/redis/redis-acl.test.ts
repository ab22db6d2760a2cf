import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished } from "vitest";
import { silentLog } from "../../src/log/log.ts";
import { checkRedis } from "../../src/redis/check.ts";
import { connectRedis } from "../../src/redis/redis.ts";
import { runDoctor } from "../../src/start/doctor/doctor.ts";
import { runRetention } from "../../src/start/retention.ts";
import { startWorld, testPolicy } from "../support/start-world.ts";
import { composeRedis } from "../support/compose.ts";
import type { PrivateRedis } from "../support/with-redis.ts";
import { hears } from "../stories/words.ts";

describe("the Redis of compose.yaml", () => {
  it("lets Gatehouse do its work, and neither forget, stop, read along nor change settings (R4)", async () => {
    await using server = await composeRedis();
    const redisUrl = server.url;
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

    // Who looks after it works with the same user
    let said = "";
    const write = (text: string) => void (said += text);
    expect(await runDoctor([], { env: world.env, write }), said).toBe(0);
    expect(said).toContain("✓ its user may write Gatehouse's keys");
    expect(await runRetention([], { redisUrl: () => redisUrl, write })).toBe(0);
    expect(said).toMatch(/^audit trail +\d+ +\d+ KiB {2}forever$/m);

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
    await expect(stranger.get("{gatehouse}:freeze")).rejects.toThrow(/^NOAUTH/);
    stranger.disconnect();
  });

  /** What a script and a transaction wrote, and what is there after a crash. */
  async function afterCrash(server: PrivateRedis) {
    const client = await connectRedis(server.url, "commands", silentLog());
    const names = ["a", "b", "c", "d", "e"].map((name) => `{gatehouse}:${name}`);
    const [a = "", b = "", c = "", d = "", e = ""] = names;
    await client.eval("for i = 1, 2 do redis.call('SET', KEYS[i], i) end", 2, a, b);
    await client.multi().set(c, 1).xadd(d, "*", "at", 1).exec();
    await client.set(e, 1);
    client.disconnect();
    await server.kill();
    await server.start();
    const again = await connectRedis(server.url, "commands", silentLog());
    const there = await Promise.all(names.map(async (name) => again.exists(name)));
    again.disconnect();
    return there;
  }

  it("has everything after a crash, of scripts and transactions too", async () => {
    await using server = await composeRedis();
    expect(await afterCrash(server)).toEqual([1, 1, 1, 1, 1]);
  });

  it.each(["", "~* &* +@all -@write", "~other:* &* +@all", "on nopass ~* &* +@read"])(
    "is refused at the start where the user `default` is `off %s`, and a restart would drop what was sent",
    async (rules) => {
      await using server = await composeRedis((script) =>
        script.replace(/"user default off[^"]*"/, `"user default off ${rules}"`),
      );
      const client = await connectRedis(server.url, "commands", silentLog());
      onTestFinished(() => client.disconnect());
      expect(await checkRedis(client, { allowVolatile: false })).toMatchObject({
        kind: "volatile",
        sentence: expect.stringContaining("Set `user default off ~* &* +@all`"),
      });
      await expect(startWorld({ redisUrl: server.url, namespace: "gatehouse" })).rejects.toThrow(
        /replays its append-only file as the user `default`/,
      );
      // Where the server at hand has mended it, nothing is lost
      if (rules === "")
        expect([
          [0, 0, 0, 0, 1],
          [1, 1, 1, 1, 1],
        ]).toContainEqual(await afterCrash(server));
    },
  );

  it("is fine where `default` lacks what is in no transaction, and says where that can't be told", async () => {
    const checked = async (change: (script: string) => string) => {
      await using server = await composeRedis(change);
      const client = await connectRedis(server.url, "commands", silentLog());
      const found = await checkRedis(client, { allowVolatile: false });
      client.disconnect();
      return found;
    };
    expect(await checked((script) => script)).toEqual({ kind: "ok" });
    expect(
      await checked((script) =>
        script.replace("+@all", "+@all -@dangerous -flushall -config +info"),
      ),
    ).toEqual({ kind: "ok" });
    expect(await checked((script) => script.replace(" +acl|getuser", ""))).toEqual({
      kind: "ok",
      untold: expect.stringMatching(/check that it is `user default off ~\* &\* \+@all`/),
    });
  });
});
