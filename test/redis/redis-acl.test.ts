import { readFile } from "node:fs/promises";
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { runDoctor } from "../../src/start/doctor/doctor.ts";
import { runRetention } from "../../src/start/retention.ts";
import { startWorld, testPolicy } from "../support/start-world.ts";
import { privateRedis } from "../support/with-redis.ts";
import { hears } from "../stories/words.ts";

const password = "not-a-real-password";

/** What compose.yaml makes of Redis: its options, once its script has written its users, in a folder of ours. */
async function composeArgs(): Promise<string[]> {
  const text = await readFile(new URL("../../compose.yaml", import.meta.url), "utf8");
  const { services } = parse(text, { merge: true }) as {
    services: { redis: { command: string[] } };
  };
  const script = services.redis.command.join("\n");
  const users = [...script.matchAll(/echo "(user .*)"/g)].map(([, user = ""]) =>
    `--${user.replace(/\$\$\(cat [^)]*\)/, password)}`.split(" "),
  );
  expect(users).toHaveLength(2);
  const [, options = ""] = /exec redis-server ([^]*)$/.exec(script) ?? [];
  const args = [
    ...options
      .replaceAll("\\\n", " ")
      .replace(/--dir \S+ --aclfile \S+/, "")
      .trim()
      .split(/\s+/),
    ...users.flat(),
  ];
  expect(args).toContain("--appendonly");
  return args;
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
    await using server = await privateRedis(await composeArgs());
    const stranger = new Redis(server.url, { lazyConnect: true, retryStrategy: () => null });
    stranger.on("error", () => undefined);
    await expect(stranger.get("{gatehouse}:freeze")).rejects.toThrow();
    stranger.disconnect();
  });
});
