import type { AlertOnVm, AlertsOnVm } from "../alert-part.ts";

/**
 * Whether an alert ended after an attempt. `unheard`: it fires as far as was told, but its source
 * hasn't spoken since it was time to judge. `unclear`: nobody can tell.
 */
export type Verdict = "helped" | "failed" | "unheard" | "unclear";

/**
 * Judges what became of each alert that fired, by what its source tells. `sentAt`: when the
 * attempt's call was sent; what had ended by then was not ended by it. `dueAt`: when it is time to
 * judge; what fired until then was not ended by it (ms by Redis). An end counts when it happened, by
 * its source, and not when it was told. What fires anew is another firing, and says nothing of the
 * first. An end explained by something else, like a later change, helps nobody. Pure.
 */
export function judgeRemedy(
  fired: Readonly<Record<string, number>>,
  {
    now,
    sentAt,
    dueAt,
    isExplained,
  }: { now: AlertsOnVm | undefined; sentAt: number; dueAt: number; isExplained: boolean },
): Readonly<Record<string, Verdict>> {
  const verdictOf = ([name, since]: readonly [string, number]): Verdict => {
    const all = (now?.alerts ?? []).filter((one) => one.name === name);
    if (all.some((one) => isSameFiring(one, since)))
      return now && now.heardAt >= dueAt ? "failed" : "unheard";
    if (all.length === 0 || all.some(({ state }) => state !== "ended")) return "unclear";
    const ends = all.map(({ endedAt }) => endedAt);
    if (ends.includes(undefined)) return "unclear";
    const end = Math.max(...ends.map((at = 0) => at));
    if (end > dueAt) return "failed";
    return end >= sentAt && !isExplained ? "helped" : "unclear";
  };
  return Object.fromEntries(Object.entries(fired).map((one) => [one[0], verdictOf(one)]));
}

/** Whether an alert still fires since then, and didn't end and fire anew meanwhile. */
export const isSameFiring = ({ state, since: begins }: AlertOnVm, since: number): boolean =>
  state === "firing" && begins <= since;

/** An attempt of the past, as advice is made of it. */
export interface PastAttempt {
  command: string;
  verdict: Verdict;
  /** When it ended (ms by Redis). */
  at: number;
}

/**
 * How often each command failed since it last helped, and when it helped if that was the last time.
 * `attempts` are of one alert, newest first. Pure.
 */
export function sumUp(
  attempts: readonly PastAttempt[],
): readonly { command: string; failures: number; helpedAt?: number }[] {
  const clear = attempts.filter(({ verdict }) => verdict === "helped" || verdict === "failed");
  return [...Map.groupBy(clear, ({ command }) => command)].map(([command, all]) => {
    const [newest] = all;
    if (newest?.verdict === "helped") return { command, failures: 0, helpedAt: newest.at };
    const helped = all.findIndex(({ verdict }) => verdict === "helped");
    return { command, failures: helped < 0 ? all.length : helped };
  });
}
