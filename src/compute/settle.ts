/**
 * When waiting for a target is over, and how often to look. A status the service may grow later ("MIGRATING") is never
 * taken for settled: nothing is concluded from it and nothing is sent on top of it.
 */
const settledVm = new Set(["RUNNING", "STOPPED", "ERROR"]);
const settledProject = new Set(["ACTIVE", "STOPPED", "ERROR"]);

export function isSettledVmStatus(status: string): boolean {
  return settledVm.has(status);
}

export function isSettledProjectStatus(status: string): boolean {
  return settledProject.has(status);
}

/** Neither a VM nor a project stays like this: CREATING, REBOOTING, DELETING, and anything unknown. */
export function isTransitional(status: string): boolean {
  return !settledVm.has(status) && !settledProject.has(status);
}

/** The first polls come quickly, because a short REBOOTING is the only proof of a restart. */
const quickPolls = 4;

/**
 * Milliseconds until the next look: `firstMs` for the first few, then a quarter of the time waited so far, at most
 * `mostMs`. So what takes long is seen at most a quarter late, and polls grow with the logarithm of the wait.
 */
export function nextPollDelay(waiting: {
  firstMs: number;
  mostMs: number;
  sinceStartMs: number;
  polls: number;
}): number {
  const { firstMs, mostMs, sinceStartMs, polls } = waiting;
  if (polls < quickPolls) return Math.min(firstMs, mostMs);
  return Math.round(Math.min(mostMs, Math.max(firstMs, sinceStartMs / 4)));
}
