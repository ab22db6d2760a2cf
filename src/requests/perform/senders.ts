/** After this many samples' worth of silence, what was seen says nothing of now. */
const staleBeats = 10;
/** A live worker renews its heartbeat within one beat. */
const missingBeats = 2;

/**
 * Whether a worker lives, judged by this process's own monotonic clock: a heartbeat expires by Redis' clock, which a step
 * ahead makes expire for every worker at once. One that stays missing for longer than it takes to renew it is gone.
 */
export function observeAlive(
  hasHeartbeat: (workerId: string) => Promise<boolean>,
  beatMs: number,
  now: () => number = () => performance.now(),
): (workerId: string) => Promise<boolean> {
  const missing = new Map<string, { since: number; last: number }>();
  return async (workerId) => {
    if (await hasHeartbeat(workerId)) {
      missing.delete(workerId);
      return true;
    }
    const at = now();
    const seen = missing.get(workerId);
    const since = seen && at - seen.last < staleBeats * beatMs ? seen.since : at;
    missing.set(workerId, { since, last: at });
    return at - since < missingBeats * beatMs;
  };
}
