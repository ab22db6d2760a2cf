/** A step of Redis' clock, not a slow answer of it (ms). A false alarm costs some waiting, nothing else. */
const stepMs = 1000;

/**
 * How old a mark is that some process left in Redis before its call, in a way that a step of Redis' clock can't make it
 * old: our own monotonic clock tells of the step, and for as long as a call may take nobody's mark counts as old then.
 */
export function createMarkAges(redisNow: () => Promise<number>, callMs: number) {
  let apart: number | undefined;
  let steppedAt = -Infinity;

  async function now(): Promise<number> {
    const at = await redisNow();
    const own = performance.now();
    if (apart !== undefined && Math.abs(at - own - apart) > stepMs) steppedAt = own;
    apart = at - own;
    return at;
  }
  now().catch(() => undefined); // so that a step before the first message is noticed too

  return {
    /** Redis time, for a mark of our own. */
    now,
    /** How long until the call behind a mark from `since` must have ended; 0 when it has (ms). */
    async leftOf(since: number): Promise<number> {
      const at = await now();
      const sinceStep = performance.now() - steppedAt;
      const age = sinceStep < callMs ? sinceStep : at - since;
      return age >= 0 && age < callMs ? callMs - age : 0;
    },
  };
}
