import { Unanswered } from "./cannot-tell.ts";

const maxRemembered = 10_000;

/**
 * Caches answers, and shares concurrent calls. Failures are never cached. While Slack limits calls,
 * an answer from at most `limitedMs` ago still counts.
 */
export function createLookups<T>(
  { now, limitedMs }: { now: () => number; limitedMs: number },
  /** `ageMs` is how old the answer is already, if it isn't new. */
  ask: (name: string, atMostMs: number) => Promise<{ value: T; ageMs?: number }>,
) {
  const known = new Map<string, { at: number; value: T }>();
  const asking = new Map<
    string,
    { at: number; atMostMs: number; answer: ReturnType<typeof ask> }
  >();

  const recent = <A extends { at: number }>(answer: A | undefined, atMostMs: number) =>
    answer !== undefined && now() - answer.at <= atMostMs ? answer : undefined;

  function remember(name: string, answer: { at: number; value: T }): void {
    const oldest = known.size >= maxRemembered ? known.keys().next().value : undefined;
    if (oldest !== undefined) known.delete(oldest);
    known.set(name, answer);
  }

  return {
    /** An answer requested at most `atMostMs` ago, or else a new one. */
    async get(name: string, atMostMs: number): Promise<T> {
      const remembered = recent(known.get(name), atMostMs);
      if (remembered) return remembered.value;
      const inFlight = recent(asking.get(name), atMostMs);
      // An answer in flight that may be older than allowed can't be shared.
      let asked = inFlight && inFlight.atMostMs <= atMostMs ? inFlight : undefined;
      if (!asked) asking.set(name, (asked = { at: now(), atMostMs, answer: ask(name, atMostMs) }));
      try {
        const { value, ageMs = 0 } = await asked.answer;
        if (asking.get(name) === asked) remember(name, { at: asked.at - ageMs, value });
        return value;
      } catch (error) {
        const last = recent(known.get(name), limitedMs);
        if (last && error instanceof Unanswered && error.isLimited) return last.value;
        throw error;
      } finally {
        if (asking.get(name) === asked) asking.delete(name);
      }
    },
    /** Forgets one name, or everything without a name. Answers in flight aren't cached either. */
    forget(name?: string): void {
      for (const all of [known, asking]) {
        if (name === undefined) all.clear();
        else all.delete(name);
      }
    },
  };
}
