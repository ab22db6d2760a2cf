import * as fc from "fast-check";

/** What a fuzzer saw. It holds when nothing was wrong and nothing crashed. */
export interface Fuzzed {
  cases: number;
  /** Led to what they asked for: which may be right (a command that reads well) or must be none (a forged vote). */
  accepted: number;
  /** Ends that nobody planned: an error that isn't one for people, a process that stopped answering. */
  crashes: readonly string[];
  /** A property that didn't hold, with the input that broke it. */
  wrong: readonly string[];
  slowestMs: number;
  /** What else there is to say, in a sentence each. */
  notes: readonly string[];
}

export interface FuzzOptions {
  cases: number;
  seed: number;
  /** Whether slowness isn't a finding: what a test says must not depend on the machine. */
  atAnySpeed?: boolean;
}

/** The seed of `npm test` and `npm run faults`; another one finds other things. */
export const usualSeed = 20261120;

const mostKept = 20;

/** Collects while it goes; keeps the first few findings of each kind. */
export function createTally() {
  const wrong: string[] = [];
  const crashes: string[] = [];
  let [cases, accepted, slowestMs] = [0, 0, 0];
  const keep = (list: string[], what: string) => {
    if (list.length < mostKept) list.push(what.slice(0, 600));
  };
  return {
    count: () => (cases += 1),
    accept: () => (accepted += 1),
    wrong: (what: string) => keep(wrong, what),
    crash: (what: string) => keep(crashes, what),
    took: (ms: number) => (slowestMs = Math.max(slowestMs, ms)),
    result: (...notes: string[]): Fuzzed => ({
      cases,
      accepted,
      crashes,
      wrong,
      slowestMs: Math.round(slowestMs * 10) / 10,
      notes,
    }),
  };
}

export type Tally = ReturnType<typeof createTally>;

/** One line about it. */
export function describeFuzzed({
  cases,
  accepted,
  crashes,
  wrong,
  slowestMs,
  notes,
}: Fuzzed): string {
  const counts = `${cases} cases, ${accepted} accepted, ${wrong.length} wrong, ${crashes.length} crashes`;
  return [`${counts}, slowest ${slowestMs} ms`, ...notes].join("; ");
}

/** Names that every object has: an own property of theirs would show on `{}` when it reached the prototype. */
const before = JSON.stringify(Object.getOwnPropertyNames(Object.prototype).toSorted());

export function isPrototypeClean(): boolean {
  const now = JSON.stringify(Object.getOwnPropertyNames(Object.prototype).toSorted());
  return now === before && !("polluted" in {}) && !Object.hasOwn(Array.prototype, "polluted");
}

/** So many cases, made a few at a time: all at once would be more than memory should hold. */
export function* sampled<T>(
  arbitrary: fc.Arbitrary<T>,
  { cases, seed }: FuzzOptions,
): Generator<T> {
  const atOnce = 250;
  for (let made = 0; made < cases; made += atOnce)
    yield* fc.sample(arbitrary, { numRuns: Math.min(atOnce, cases - made), seed: seed + made });
}

/** Works through them with so many hands; each case is taken once. */
export async function withHands<T>(
  hands: number,
  all: Iterable<T>,
  work: (one: T, n: number) => Promise<void>,
): Promise<void> {
  const queue = all[Symbol.iterator]();
  let n = 0;
  const hand = async () => {
    for (let next = queue.next(); !next.done; next = queue.next()) await work(next.value, n++);
  };
  await Promise.all(Array.from({ length: hands }, hand));
}
