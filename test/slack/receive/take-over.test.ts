import { describe, expect, it } from "vitest";
import { createKeys, connectRedis } from "../../../src/redis/redis.ts";
import { silentLog } from "../../../src/log/log.ts";
import { message, section, Markdown } from "../../../src/messages/message.ts";
import type { Interaction } from "../../../src/slack/receive/interaction.ts";
import { createIntake, type Intake, IntakeDown } from "../../../src/slack/receive/intake.ts";
import { privateRedis, testRedis } from "../../support/with-redis.ts";
import { startGateway } from "./start-slack.ts";

const interaction = (
  id: string,
  more: Partial<Extract<Interaction, { kind: "command" | "mention" }>> = {},
): Interaction => ({
  id,
  at: Date.now(),
  userId: "U0OLIVIA",
  teamId: "T01CONF",
  channelId: "C01OPS",
  kind: "command",
  text: "vm list",
  ...more,
});

async function intakes(
  gateways: string[],
  { beatMs = 20, staleAfterMs = 600_000 }: { beatMs?: number; staleAfterMs?: number } = {},
) {
  const takeOverAfterMs = 0;
  const shared = await testRedis();
  const all = gateways.map((gateway) =>
    createIntake({
      redis: shared.redis,
      key: shared.key,
      log: silentLog(),
      gateway,
      beatMs,
      staleAfterMs,
      takeOverAfterMs,
    }),
  );
  return { shared, all };
}

const recovered = async (by: Pick<Intake, "recover"> | undefined) =>
  by === undefined ? [] : await Array.fromAsync(by.recover());

/** Until `most` came: what is left may come in several rounds, for each is left at its own time. */
async function takenOver(by: Pick<Intake, "recover">[], most: number): Promise<string[]> {
  const left: string[] = [];
  await expect
    .poll(
      async () => {
        const found = (await Promise.all(by.map(recovered))).flat();
        left.push(...found.map((one) => one.interaction.id));
        return left.length;
      },
      { interval: 20, timeout: 10_000 },
    )
    .toBeGreaterThanOrEqual(most);
  return left;
}

async function dump(
  redis: Awaited<ReturnType<typeof testRedis>>["redis"],
  prefix: string,
): Promise<string> {
  const keys = await redis.keys(`${prefix}*`);
  const parts = await Promise.all(
    keys.map(async (key) => {
      const type = await redis.type(key);
      return `${key} ${type === "hash" ? JSON.stringify(await redis.hgetall(key)) : type === "string" ? await redis.get(key) : ""}`;
    }),
  );
  return parts.join("\n");
}

describe("what was acked", () => {
  it("is written down before, once, without trigger and response URL", async () => {
    await using shared = await testRedis();
    const intake = createIntake({ redis: shared.redis, key: shared.key, log: silentLog() });
    const url = "https://hooks.slack.com/commands/T01/123/verysecret";
    const asked = interaction("command:1.2.3", { triggerId: "1.2.3.trigger", responseUrl: url });
    expect(await intake.accept(asked)).toBe("new");
    expect(await intake.accept(asked)).toBe("seen");
    const stored = await dump(shared.redis, shared.key.prefix);
    expect(stored).toContain("vm list");
    expect(stored).not.toMatch(/verysecret|hooks\.slack|1\.2\.3\.trigger/);
    await intake.finish(asked.id);
    // It comes again after its end
    expect(await intake.accept(asked)).toBe("seen");
    expect(await dump(shared.redis, shared.key.prefix)).not.toContain("vm list");
  });

  it("goes to exactly one other gateway when its own dies, and to none while it lives", async () => {
    // A gateway that takes over shows no life here but by that: none may count as dead because the machine was busy
    const { shared, all } = await intakes(["gw-a", "gw-b", "gw-c", "gw-d"], { beatMs: 400 });
    await using _ = shared;
    const [dead, ...others] = all;
    for (let count = 0; count < 30; count += 1) {
      const asked = interaction(`command:${count}`);
      await dead?.accept(asked);
    }
    dead?.start();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(await recovered(others[0])).toEqual([]);
    await dead?.close();
    const left = await takenOver(others, 30);
    expect(new Set(left).size).toBe(30);
    expect(left).toHaveLength(30);
    expect((await Promise.all(others.map(recovered))).flat()).toEqual([]);
  });

  it("comes as too late once it is too old to be done, or when gateways keep dying over it", async () => {
    const { shared, all } = await intakes(["gw-a", "gw-b"], { staleAfterMs: 400 });
    await using _ = shared;
    const [dead, other] = all;
    await dead?.accept(interaction("command:old"));
    await dead?.close();
    await new Promise((resolve) => setTimeout(resolve, 450));
    const left = await recovered(other);
    expect(left).toMatchObject([{ tooLate: true, interaction: { id: "command:old" } }]);
    expect(await recovered(other)).toEqual([]);
    const deadly = interaction("command:deadly");
    await dead?.accept(deadly);
    const seen: boolean[] = [];
    for (let life = 0; life < 5; life += 1) {
      const next = createIntake({
        redis: shared.redis,
        key: shared.key,
        log: silentLog(),
        gateway: `gw-${life}`,
        beatMs: 5,
        takeOverAfterMs: 0,
      });
      await new Promise((resolve) => setTimeout(resolve, 80));
      seen.push(...(await recovered(next)).map(({ tooLate }) => tooLate));
    }
    expect(seen).toEqual([false, false, false, true]);
  });

  it("comes to its own gateway once more when Redis forgot that it was finished, but not while that has it in hand", async () => {
    const { shared, all } = await intakes(["gw-a"]);
    await using _ = shared;
    const { redis, key } = shared;
    const [own] = all as [(typeof all)[0]];
    await own.accept(interaction("command:1"));
    await own.accept(interaction("command:2"));
    const before = await redis.hgetall(key("intake", "records"));
    await own.finish("command:1");
    // As a Redis that lost its last second, or that was put back to a copy
    await redis.hset(key("intake", "records"), before);
    await redis.zadd(key("intake", "due"), 1, "command:1", 1, "command:2");
    expect(await takenOver([own, own], 1)).toEqual(["command:1"]);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await recovered(own)).toEqual([]);
    await own.close();
  });

  it("is not taken over by its own gateway while Redis's answer is on its way", async () => {
    const { shared, all } = await intakes(["gw-a"]);
    await using _ = shared;
    const [a] = all as [(typeof all)[0]];
    const taking = a.accept(interaction("command:own"));
    await new Promise(setImmediate);
    // A loop that stands still: the answer is there, and not read
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    const [taken, left] = await Promise.all([taking, recovered(a)]);
    expect([taken, left]).toEqual(["new", []]);
  });

  it("is not done after all when Redis took it too late to say so", async () => {
    await using server = await privateRedis();
    const redis = await connectRedis(server.url, "commands", silentLog());
    const other = await connectRedis(server.url, "commands", silentLog());
    const key = createKeys("late");
    const intake = createIntake({ redis, key, log: silentLog(), acceptWithinMs: 100, beatMs: 20 });
    intake.start();
    await other.call("CLIENT", "PAUSE", "400", "ALL");
    await expect(intake.accept(interaction("command:late"))).rejects.toThrow(IntakeDown);
    // Each accept that heard nothing is undone, however often it came
    await expect
      .poll(() => intake.accept(interaction("command:late")), { timeout: 5_000 })
      .toBe("new");
    await intake.close();
    redis.disconnect();
    other.disconnect();
  });

  it("is not done after all when a frozen Redis takes it after it was undone, from a line long gone", async () => {
    await using world = await testRedis();
    const { redis, key } = world;
    const made = () => createIntake({ redis, key, log: silentLog(), gateway: "gw", beatMs: 5 });
    const undone = made();
    expect(await undone.accept(interaction("command:1"))).toBe("new");
    await undone.finish("command:1", { forget: true });
    // The same accept, which Redis executes only now
    expect(await made().accept(interaction("command:1"))).toBe("seen");
    expect(await redis.hlen(key("intake", "records"))).toBe(0);
    // Typed again it is another accept
    expect(await undone.accept(interaction("command:1"))).toBe("new");
  });

  it("stays with a gateway that renews it, is stored again when a failover lost it, and is another's once that sleeps", async () => {
    const { shared, all } = await intakes(["gw-a", "gw-b"], { beatMs: 100 });
    await using _ = shared;
    const [own, other] = all as [(typeof all)[0], (typeof all)[0]];
    const { redis, key } = shared;
    await own.accept(interaction("command:lost"));
    await redis.del(key("intake", "records"), key("intake", "due"));
    own.start();
    const stored = async () => redis.hget(key("intake", "records"), "command:lost");
    await expect.poll(stored).toContain("vm list");
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(await recovered(other)).toEqual([]);
    await own.close();
    expect(await takenOver([other], 1)).toEqual(["command:lost"]);
  });

  it("fails within a second when Redis is gone, and is refused when too long", async () => {
    await using server = await privateRedis();
    const redis = await connectRedis(server.url, "commands", silentLog());
    const intake = createIntake({ redis, key: createKeys("gone"), log: silentLog() });
    await expect(
      intake.accept(interaction("command:long", { text: "x".repeat(200_000) })),
    ).rejects.toThrow("That message is too long");
    await server.kill();
    const began = performance.now();
    await expect(intake.accept(interaction("command:1"))).rejects.toThrow(
      "Redis is down: nothing was done.",
    );
    expect(performance.now() - began).toBeLessThan(2_500);
    await expect(intake.finish("command:1")).resolves.toBeUndefined();
    redis.disconnect();
  });

  it("is refused in a message when too many are pending, and may come again", async () => {
    await using gateway = await startGateway();
    const shared = await connectRedis(gateway.redisUrl, "commands", silentLog());
    const records = createKeys(gateway.namespace)("intake", "records");
    const many = Array.from({ length: 10_000 }, (_, n) => [`other:${n}`, "{}"] as const);
    await shared.hset(records, Object.fromEntries(many));
    const olivia = gateway.slack.person("olivia");
    await olivia.types("ops", "/vm list");
    await olivia.until(() =>
      olivia
        .seesChannel("ops")
        .messages.some(({ text }) => /Too many requests are pending: nothing was done/.test(text)),
    );
    expect(gateway.handled).toEqual([]);
    expect(await shared.hlen(records)).toBe(10_000);
    await shared.del(records);
    await olivia.types("ops", "/vm list");
    await gateway.handles(1);
    shared.disconnect();
  });

  it("is finished by the next gateway, which can still answer the person", async () => {
    await using gateway = await startGateway({
      handlers: { handle: () => new Promise(() => undefined) },
    });
    const olivia = gateway.slack.person("olivia");
    await olivia.types("secret", "/vm list");
    await gateway.handles(1);
    await gateway.app.close(0);
    await using next = await startGateway({
      beside: gateway,
      handlers: {
        handle: (_ask, reply) => reply.privately(message("Here", section(new Markdown("Here")))),
      },
    });
    const [taken] = await next.handles(1);
    expect(taken).toMatchObject({ kind: "command", text: "vm list", id: gateway.handled[0]?.id });
    expect(taken?.triggerId).toBeUndefined();
    // The response URL died with its gateway, and the bot isn't in that channel
    const isTold = () =>
      olivia.seesChannel("gatehouse").messages.some((one) => one.text === "Here");
    await olivia.until(isTold);
  });
});
