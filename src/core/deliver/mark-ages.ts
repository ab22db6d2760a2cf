/**
 * A larger difference counts as a step of Redis's clock, not as a slow answer (ms). A false alarm
 * only costs a wait.
 */
const stepMs = 1000;

/**
 * Tells the age of marks that processes left in Redis before their calls. A step of Redis's clock
 * must not make a mark look old. The monotonic clock detects the step, and then no mark counts as
 * old until a call must have ended (`withinMs`).
 */
export function createMarkAges(redisNow: () => Promise<number>, withinMs: number) {
  let apart: number | undefined;
  let steppedAt = -Infinity;

  function compareClocks(at: number): void {
    const own = performance.now();
    if (apart !== undefined && Math.abs(at - own - apart) > stepMs) steppedAt = own;
    apart = at - own;
  }

  async function now(): Promise<number> {
    const at = await redisNow();
    compareClocks(at);
    return at;
  }
  // This first comparison lets a step be detected before the first message, too.
  now().catch(() => undefined);

  return {
    now,
    /** Compares the clocks with a Redis time that was read just now. */
    compareClocks: compareClocks,
    /** How long until the call of a mark from `since` must have ended (ms); 0 when it has ended. */
    async leftOf(since: number): Promise<number> {
      const at = await now();
      const sinceStep = performance.now() - steppedAt;
      const age = sinceStep < withinMs ? sinceStep : at - since;
      return age >= 0 && age < withinMs ? withinMs - age : 0;
    },
  };
}
