import type { Config } from "../../config/config.ts";
import { silentLog } from "../../log/log.ts";
import { redisNow, withRedis } from "../../redis/redis.ts";
import { createClock, isClockOff, ownClockWords } from "../clock.ts";
import { type Finding, ill, well } from "../../messages/finding.ts";

/**
 * Compares this machine's clock with Redis's. Undefined when Redis can't be asked, which its own
 * check reports.
 */
export async function judgeClock(config: Config): Promise<readonly Finding[] | undefined> {
  const shown = { certificate: () => config.redisCertificate };
  const offMs = await withRedis(config.redisUrl, shown, async (redis) => {
    const clock = createClock(silentLog());
    const askedAt = Date.now();
    clock.compare(askedAt, await redisNow(redis), Date.now());
    return clock.offMs();
  }).catch(() => undefined);
  return offMs === undefined ? undefined : [clockFinding(offMs)];
}

export const clockFinding = (offMs: number): Finding =>
  isClockOff(offMs)
    ? ill(
        ownClockWords(offMs),
        "Let NTP set the clocks of both machines: until they agree, no process takes work here.",
      )
    : well("clock: within 2 s of Redis's");
