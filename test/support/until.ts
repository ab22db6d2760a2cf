import { availableParallelism, loadavg } from "node:os";
import { expect } from "vitest";
import { type Patience, usualPatience } from "../../sandbox/slack/state/changes.ts";

/** `PATIENCE` shortens the waits, as a factor, for a developer who knows that a test fails. */
const factor = Number(process.env["PATIENCE"] ?? 1);
export const patience: Patience = {
  stillMs: usualPatience.stillMs * factor,
  longestMs: usualPatience.longestMs * factor,
};

/** What runs in this process while tests wait: its changes wake the waits, and its log explains those that fail. */
export interface Watched {
  /** The log of Gatehouse, line by line. */
  lines: readonly string[];
  onChange?(listener: () => void): () => void;
}

const watched = new Set<Watched>();

/** Returns the function that ends it. */
export function watch(world: Watched): () => void {
  watched.add(world);
  return () => void watched.delete(world);
}

type Looked<T> = Exclude<Awaited<T>, undefined | null | false>;

/** What is waited for: awaited as it is, its first value; with a matcher, that the value passes it. */
type Fact<T> = Promise<Looked<T>> & ReturnType<typeof expect.poll<Awaited<T>>>;

/**
 * Waits for a fact, however long the machine takes:
 *
 *     const card = await until(() => cardOf(world));          // something else than undefined, null, or false
 *     await until(() => posts(world).length).toBe(2);         // any matcher of expect
 *
 * `look` may throw, or expect something, until the fact is there. A wait fails only when nothing moves any more, neither the value nor
 * Gatehouse's log, or after ten minutes. Its error names the fact, the value instead (`instead` says more of it), how busy the machine
 * was, and what Gatehouse logged last.
 */
export function until<T>(
  look: () => T,
  instead: () => unknown = () => "",
  limits = patience,
): Fact<T> {
  const passing = (check: (value: Awaited<T>) => void) =>
    wait({ look, instead, limits, check, calledFrom: new Error("until") });
  const isThere = (value: Awaited<T>) => {
    if (value === undefined || value === null || value === false)
      throw new Error(`it was ${String(value)}`);
  };
  const fact = (isNot: boolean): Fact<T> =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the proxy has whatever it is asked for
    new Proxy({} as Fact<T>, {
      get(_, name) {
        if (name === "not") return fact(!isNot);
        if (name === "then" || name === "catch" || name === "finally") {
          const waiting = passing(isThere);
          return waiting[name].bind(waiting);
        }
        return (...expected: unknown[]) =>
          passing((value) => {
            const assertion: object = isNot ? expect(value).not : expect(value);
            Reflect.apply(Reflect.get(assertion, name) as () => void, assertion, expected);
          });
      },
    });
  return fact(false);
}

interface Wait<T> {
  look: () => T;
  /** Throws unless the value is what is waited for. */
  check: (value: Awaited<T>) => void;
  instead: () => unknown;
  limits: Patience;
  /** Its stack is that of the test. */
  calledFrom: Error;
}

/** Looks until the value passes. Resolves with it. */
async function wait<T>({ look, check, instead, limits, calledFrom }: Wait<T>): Promise<Looked<T>> {
  const beganAt = performance.now();
  let [movedAt, state] = [beganAt, ""];
  for (let pauseMs = 5; ; pauseMs = Math.min(2 * pauseMs, 100)) {
    let problem: unknown;
    try {
      const value = await look();
      check(value);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the check throws for the others
      return value as Looked<T>;
    } catch (error) {
      problem = error;
    }
    const now = performance.now();
    const stateNow = `${messageOf(problem)} ${[...watched].map(lastNews).join()}`;
    if (stateNow !== state) [state, movedAt] = [stateNow, now];
    if (now - movedAt > limits.stillMs || now - beganAt > limits.longestMs)
      throw explain(problem, calledFrom, [
        `Waited ${Math.round((now - beganAt) / 1_000)} s for ${String(look)}: ${messageOf(problem)}`,
        String(await instead()),
      ]);
    await nextChange(pauseMs);
  }
}

/** The last line that isn't for debugging: an idle world logs those, too. */
const lastNews = ({ lines }: Watched) => lines.findLast((line) => !line.includes('"debug"'));

/** Resolves at the next change in a world, at the latest after this time. */
const nextChange = (pauseMs: number): Promise<void> =>
  new Promise((resolve) => {
    const stops = [...watched].map((world) => world.onChange?.(() => finish()));
    const timer = setTimeout(() => finish(), pauseMs);
    const finish = () => {
      clearTimeout(timer);
      for (const stop of stops) stop?.();
      resolve();
    };
  });

const messageOf = (problem: unknown) =>
  problem instanceof Error ? problem.message : String(problem);

/** The error of a wait that failed: the matcher's own, so that vitest shows its difference, with what explains it. */
function explain(problem: unknown, calledFrom: Error, lines: readonly string[]): Error {
  const error = problem instanceof Error ? problem : new Error(String(problem));
  error.message = `${lines.filter((line) => line !== "").join("\n")}${surroundings()}`;
  error.stack = `${error.message}\n${(calledFrom.stack ?? "").split("\n").slice(1).join("\n")}`;
  return error;
}

/** How busy the machine was, and what Gatehouse logged last, as lines for the error of a wait. */
export function surroundings(): string {
  const [load = 0] = loadavg();
  const logs = [...watched]
    .map(({ lines }) => lines.slice(-10).join(""))
    .filter((text) => text !== "");
  return [
    `\nThe load was ${load.toFixed(1)} on ${availableParallelism()} processors. Gatehouse's last lines:`,
    logs.join("\n") || "none",
  ].join("\n");
}
