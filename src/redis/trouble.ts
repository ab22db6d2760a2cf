import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../errors.ts";

/** Redis answers with codes, ioredis with sentences alone. */
const troubles: readonly (readonly [said: RegExp, words: string])[] = [
  [/^OOM /, "Redis is full"],
  [/^MISCONF /, "Redis can't write to its disk"],
  [/^READONLY /, "Redis is a read-only replica"],
  [/^NOREPLICAS /, "Redis can't reach its replicas"],
  [/^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|LOADING) /, "Redis is changing its primary"],
  [/^Command timed out$/, "Redis answers slowly"],
  [
    /^(Connection is closed|Stream isn't writeable|Reached the max retries|Command aborted)/,
    "Redis is down",
  ],
];

/** What is wrong with Redis, in words for a person; undefined for any other error. */
export function redisTrouble(error: unknown): string | undefined {
  const said = messageOf(error);
  return troubles.find(([known]) => known.test(said))?.[1];
}

const longestWaitMs = 1_000;

/** Repeats what may be repeated until Redis takes it, for `patienceMs`: longer than a failover lasts. */
export async function patiently<T>(act: () => Promise<T>, patienceMs = 15_000): Promise<T> {
  const until = performance.now() + patienceMs;
  for (let waitMs = 100; ; waitMs = Math.min(longestWaitMs, 2 * waitMs)) {
    try {
      return await act();
    } catch (error) {
      if (redisTrouble(error) === undefined || performance.now() > until) throw error;
      await sleep(waitMs / 2 + Math.random() * waitMs);
    }
  }
}
