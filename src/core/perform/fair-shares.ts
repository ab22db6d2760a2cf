/** From this age on (ms), a step under way shows that its project is slow. */
const slowMs = 2_000;
/** How long a project counts as slow after that. */
const slowForMs = 30_000;
/** How soon a request comes again when its project has no slot left, at least and at most (ms); half of it is jitter. */
const pauseMs = { least: 400, most: 6_000 };

interface Place {
  since: number;
}

/**
 * The requests that found no slot, in the order of their last turn, each with the latest time at
 * which it comes again (ms).
 */
type Waiting = Map<string, number>;

/**
 * Shares a worker's slots between projects. A project alone gets three quarters of them, and one
 * whose calls hang gets a quarter, so that requests of other projects begin within seconds.
 */
export function createShares(
  slots: number,
  now: () => number = () => performance.now(),
  random: () => number = Math.random,
) {
  const running = new Map<string, Set<Place>>();
  const slowUntil = new Map<string, number>();
  const turnedAway = new Map<string, Waiting>();

  /** Notes that this request found no slot, and returns how many of its project wait. */
  function noteTurnedAway(project: string, request: string): number {
    const at = now();
    const waiting = turnedAway.getOrInsertComputed(project, (): Waiting => new Map());
    waiting.delete(request);
    waiting.set(request, at + pauseMs.most);
    // A request that didn't come again was taken by another worker, or has ended.
    for (const [other, until] of waiting) {
      if (until >= at) break;
      waiting.delete(other);
    }
    return waiting.size;
  }

  /**
   * The longer the steps under way have lasted, and the more requests wait for each place, the
   * longer it takes until a place is free. So many requests for a slow project don't keep the
   * worker busy with turning them away, and requests for a quick one aren't held up.
   */
  function pauseFor(waiting: number, places: ReadonlySet<Place>): number {
    const ages = [...places].reduce((sum, { since }) => sum + now() - since, 0);
    const wholeMs = (ages / places.size) * (waiting / places.size);
    const ms = Math.min(pauseMs.most, Math.max(pauseMs.least, wholeMs));
    return (ms / 2) * (1 + random());
  }

  return {
    /**
     * Takes a place, which is given back by calling `leave`. When the project has none left, tells
     * how soon to try again (ms).
     */
    take(project: string, request: string): { leave(): void } | { waitMs: number } {
      const places = running.get(project) ?? new Set();
      const at = now();
      if ([...places].some(({ since }) => at - since > slowMs))
        slowUntil.set(project, at + slowForMs);
      const isSlow = (slowUntil.get(project) ?? 0) > at;
      if (places.size >= Math.max(1, Math.floor(slots * (isSlow ? 0.25 : 0.75))))
        return { waitMs: pauseFor(noteTurnedAway(project, request), places) };
      turnedAway.get(project)?.delete(request);
      const place = { since: at };
      running.set(project, places.add(place));
      return {
        leave() {
          if (now() - place.since > slowMs) slowUntil.set(project, now() + slowForMs);
          places.delete(place);
          if (places.size > 0) return;
          running.delete(project);
          turnedAway.delete(project);
        },
      };
    },
  };
}
