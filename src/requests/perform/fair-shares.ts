/** From this age on (ms), a step under way shows that its project is slow. */
const slowMs = 2_000;
/** How long a project counts as slow after that. */
const slowForMs = 30_000;

/**
 * Shares a worker's slots between projects: one alone gets three quarters of them, and one whose calls hang gets a quarter,
 * so that requests of others begin within seconds.
 */
export function createShares(slots: number, now: () => number = () => performance.now()) {
  const running = new Map<string, Set<{ since: number }>>();
  const slowUntil = new Map<string, number>();
  return {
    /** Takes a place, to be given back by calling the result; undefined when the project has none left. */
    take(project: string): (() => void) | undefined {
      const places = running.get(project) ?? new Set();
      const at = now();
      if ([...places].some(({ since }) => at - since > slowMs))
        slowUntil.set(project, at + slowForMs);
      const isSlow = (slowUntil.get(project) ?? 0) > at;
      if (places.size >= Math.max(1, Math.floor(slots * (isSlow ? 0.25 : 0.75)))) return undefined;
      const place = { since: at };
      running.set(project, places.add(place));
      return () => {
        if (now() - place.since > slowMs) slowUntil.set(project, now() + slowForMs);
        places.delete(place);
        if (places.size === 0) running.delete(project);
      };
    },
  };
}
