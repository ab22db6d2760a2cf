/** Remembers answers for a while and asks once for many who want to know the same. Failures are never remembered. */
export interface Lookups<T> {
  /** An answer whose question was asked at most `atMostMs` ago, else a new one. */
  get(name: string, atMostMs: number): Promise<T>;
  /** What is remembered, if it isn't older than that; asks nobody. */
  known(name: string, atMostMs: number): T | undefined;
  /** Everything when no name is given. Answers still on their way are not remembered either. */
  forget(name?: string): void;
}

interface Asked<T> {
  at: number;
  answer: Promise<T>;
  value?: { is: T };
}

const mostRemembered = 10_000;

export function createLookups<T>(ask: (name: string) => Promise<T>, now: () => number): Lookups<T> {
  const asked = new Map<string, Asked<T>>();

  function entry(name: string, atMostMs: number) {
    const found = asked.get(name);
    return found !== undefined && now() - found.at <= atMostMs ? found : undefined;
  }

  async function keep(name: string, made: Asked<T>, before: Asked<T> | undefined): Promise<void> {
    try {
      made.value = { is: await made.answer };
    } catch {
      // The answer before stays good for as long as it was.
      if (asked.get(name) !== made) return;
      if (before?.value === undefined) asked.delete(name);
      else asked.set(name, before);
    }
  }

  return {
    get(name, atMostMs) {
      const found = entry(name, atMostMs);
      if (found !== undefined) return found.answer;
      const oldest = asked.size >= mostRemembered ? asked.keys().next().value : undefined;
      if (oldest !== undefined) asked.delete(oldest);
      const before = asked.get(name);
      const made: Asked<T> = {
        at: now(),
        answer: ask(name),
      };
      asked.delete(name);
      asked.set(name, made);
      void keep(name, made, before);
      return made.answer;
    },
    known(name, atMostMs) {
      return entry(name, atMostMs)?.value?.is;
    },
    forget(name) {
      if (name === undefined) asked.clear();
      else asked.delete(name);
    },
  };
}
