import type { AlertOnVm, AlertsOnVm } from "../alert-part.ts";

/**
 * What became of an alert after an attempt.
 *
 * - `helped`: it ended in time. `failed`: it fired for longer.
 * - `unheard`: it fires as far as was told, but its source hasn't told of it since it was time to
 *   judge.
 * - `early`: it had ended before the attempt's call was sent. `explained`: it ended in time, but
 *   something else explains that.
 * - `unclear`: nobody can tell.
 */
export const remedyVerdicts = [
  "helped",
  "failed",
  "unheard",
  "early",
  "explained",
  "unclear",
] as const;
export type Verdict = (typeof remedyVerdicts)[number];

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
    const all = (now?.alerts ?? []).filter((alert) => alert.name === name);
    const same = all.filter((alert) => isSameFiring(alert, since));
    if (same.length > 0) return same.some((alert) => alert.heardAt >= dueAt) ? "failed" : "unheard";
    if (all.some(({ state }) => state !== "ended")) return "unclear";
    // What began after the call was sent is another firing, also once it has ended.
    const about = all.filter((alert) => alert.since <= Math.max(since, sentAt));
    const ends = about.map(({ endedAt }) => endedAt);
    if (ends.length === 0 || ends.includes(undefined)) return "unclear";
    const end = Math.max(...ends.map((at = 0) => at));
    if (end > dueAt) return "failed";
    if (end < sentAt) return "early";
    return isExplained ? "explained" : "helped";
  };
  return Object.fromEntries(Object.entries(fired).map((entry) => [entry[0], verdictOf(entry)]));
}

/** Whether an alert fired as far as was known when it was judged. */
export const isFiringVerdict = (verdict: Verdict | undefined): boolean =>
  verdict === "failed" || verdict === "unheard";

/** The names of the alerts that fired as far as was known when they were judged. */
export const firingIn = (verdicts: Readonly<Record<string, Verdict>>): string[] =>
  Object.keys(verdicts).filter((name) => isFiringVerdict(verdicts[name]));

/** Whether its source told that an alert had ended by the time at which it was judged. */
export const isOverVerdict = (verdict: Verdict | undefined): boolean =>
  verdict === "helped" || verdict === "early" || verdict === "explained";

/** Whether an alert still fires since then, and didn't end and fire anew meanwhile. */
export const isSameFiring = (
  { state, since: begins }: Pick<AlertOnVm, "state" | "since">,
  since: number,
): boolean => state === "firing" && begins <= since;

/** Whether one of the alerts that fired before the attempt (`fired`) does now. */
export const firesStill = (
  { fired }: { fired: Readonly<Record<string, number>> },
  alerts: readonly Pick<AlertOnVm, "name" | "state" | "since">[],
): boolean => alerts.some((alert) => isSameFiring(alert, fired[alert.name] ?? 0));

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
