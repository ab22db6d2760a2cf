import { expect, it } from "vitest";
import { ConfigError } from "../../src/config/config-error.ts";
import { storedFormat, takeFormat } from "../../src/operate/stored-format.ts";
import { redisNow } from "../../src/redis/redis.ts";
import { processName } from "../../src/operate/presence.ts";
import { testRedis } from "../support/with-redis.ts";

const mine = { dataDir: "/var/lib/gatehouse", beatMs: 1_000 };

/** As a process reports itself, so long ago (ms). */
async function isSeen(
  { redis, key }: Awaited<ReturnType<typeof testRedis>>,
  name: string,
  agoMs: number,
): Promise<void> {
  const presence = { role: "gateway", host: "h", tallies: {}, clockOffMs: 0 };
  const at = (await redisNow(redis)) - agoMs;
  await redis.hset(key("processes"), name, `${at} ${JSON.stringify(presence)}`);
}

it("belongs to the first who takes it, and to processes of its format", async () => {
  await using here = await testRedis();
  await takeFormat(here.redis, here.key, mine);
  await takeFormat(here.redis, here.key, mine);
  expect(await here.redis.get(here.key("format"))).toBe(storedFormat);
});

it("the format is another's while requests of that are open or processes of it run, and is taken over afterwards", async () => {
  await using here = await testRedis();
  const { redis, key } = here;
  await redis.set(key("format"), "0");
  await redis.zadd(key("requests", "open"), 1, "r-1");
  await isSeen(here, "other /data", 0);
  // The same directory, where it ran before, and one that died
  await isSeen(here, processName(mine.dataDir), 0);
  await isSeen(here, "dead /data", 60_000);
  const taken = takeFormat(redis, key, mine);
  await expect(taken).rejects.toBeInstanceOf(ConfigError);
  await expect(taken).rejects.toThrow(
    /holds stored format 0 with 1 open request and 1 running process; .* let the open requests end, stop all processes/,
  );
  await redis.del(key("requests", "open"));
  await expect(takeFormat(redis, key, mine)).rejects.toThrow(
    "with 0 open requests and 1 running process;",
  );
  await redis.hdel(key("processes"), "other /data");
  await takeFormat(redis, key, mine);
  expect(await redis.get(key("format"))).toBe(storedFormat);
});
