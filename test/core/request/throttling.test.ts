import { expect, it } from "vitest";
import { createThrottling } from "../../../src/core/request/throttling.ts";
import { testRedis } from "../../support/with-redis.ts";

it("calls pause for as long as the service said, and no longer where Redis's clock was set back since", async () => {
  await using here = await testRedis();
  const { redis, key } = here;
  const throttling = createThrottling(redis, key);
  expect(await throttling.throttledMs()).toBe(0);
  await throttling.throttle(60_000);
  expect(await throttling.throttledMs()).toBeGreaterThan(50_000);
  expect(await throttling.throttledMs()).toBeLessThanOrEqual(60_000);
  // After the clock was set back by an hour, the stored time is an hour ahead.
  const since = Number(await redis.get(key("throttled")));
  await redis.set(key("throttled"), since + 3_600_000, "PX", 3_660_000);
  expect(await throttling.throttledMs()).toBe(0);
});
