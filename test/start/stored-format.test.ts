import { expect, it } from "vitest";
import { ConfigError } from "../../src/config/config.ts";
import { storedFormat, takeFormat } from "../../src/start/services.ts";
import { testRedis } from "../support/with-redis.ts";

it("belongs to the first who takes it, and to processes of its format", async () => {
  await using here = await testRedis();
  await takeFormat(here.redis, here.key);
  await takeFormat(here.redis, here.key);
  expect(await here.redis.get(here.key("format"))).toBe(storedFormat);
});

it("is another's while requests of that are open or workers of it run, and is taken over afterwards", async () => {
  await using here = await testRedis();
  const { redis, key } = here;
  await redis.set(key("format"), "0");
  await redis.zadd(key("requests", "open"), 1, "r-1");
  await redis.sadd(key("workers"), "w-1");
  await redis.set(key("worker", "w-1"), "1");
  const taken = takeFormat(redis, key);
  await expect(taken).rejects.toBeInstanceOf(ConfigError);
  await expect(taken).rejects.toThrow(
    /holds stored format 0 with 1 open request and 1 running worker; .* let the open requests end, stop all processes/,
  );
  await redis.del(key("requests", "open"));
  await expect(takeFormat(redis, key)).rejects.toThrow(
    "with 0 open requests and 1 running worker;",
  );
  await redis.del(key("worker", "w-1"));
  await takeFormat(redis, key);
  expect(await redis.get(key("format"))).toBe(storedFormat);
});
