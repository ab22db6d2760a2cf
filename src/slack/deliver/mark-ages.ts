/** More than this is a step of Redis' clock, not a slow answer (ms). A false alarm only costs a wait. */
const stepMs = 1000;

/**
 * The age of a mark that a process left in Redis before its call. A step of Redis' clock must not make it look old: the
 * monotonic clock detects the step, and then no mark counts as old until a call must have ended.
 */
export function createMarkAges(redisNow: () => Promise<number>, withinMs: number) {
  let apart: number | undefined;
  let steppedAt = -Infinity;

  function saw(at: number): void {
    const own = performance.now();
    if (apart !== undefined && Math.abs(at - own - apart) > stepMs) steppedAt = own;
    apart = at - own;
  }

  async function now(): Promise<number> {
    const at = await redisNow();
    saw(at);
    return at;
  }
  now().catch(() => undefined); // detects a step before the first message too

  return {
    now,
    /** Redis time, as it was told just now. */
    saw,
    /** How long until the call behind a mark from `since` must have ended; 0 when it has (ms). */
    async leftOf(since: number): Promise<number> {
      const at = await now();
      const sinceStep = performance.now() - steppedAt;
      const age = sinceStep < withinMs ? sinceStep : at - since;
      return age >= 0 && age < withinMs ? withinMs - age : 0;
    },
  };
}
