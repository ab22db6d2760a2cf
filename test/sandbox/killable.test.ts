import { describe, expect, it } from "vitest";
import { silentLog } from "../../src/log/log.ts";
import { connectRedis } from "../../src/redis/redis.ts";
import { startRedis } from "../../sandbox/ensure-redis.ts";
import { killableRedis } from "../../sandbox/killable.ts";

describe("a Redis that can be killed", () => {
  it("comes back where it was, with what it had", async () => {
    const server = await startRedis();
    const redis = killableRedis(server);
    const write = async <T>(work: (client: Awaited<ReturnType<typeof connectRedis>>) => T) => {
      const client = await connectRedis(server.url, "commands", silentLog());
      const done = await work(client);
      client.disconnect();
      return done;
    };
    await write((client) => client.set("kept", "yes"));
    await redis.kill();
    expect(redis.isUp()).toBe(false);
    await redis.start();
    expect(redis.isUp()).toBe(true);
    expect(await write((client) => client.get("kept"))).toBe("yes");
    await redis.close();
    await redis.close(); // twice is harmless
  });
});
