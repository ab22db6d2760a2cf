import type { AlertsOnVm } from "../alert-part.ts";

/** Whether an alert ended after an attempt. `unclear`: nobody can tell. */
export type Verdict = "helped" | "failed" | "unclear";

/** An alert that is looked at this much later may have ended long after the attempt (ms). */
const lateMs = 5 * 60_000;

/**
 * Judges what became of each alert that fired, by what its source tells now. `sentAt`: when the attempt's call
 * was sent (ms by Redis); what had ended by then was not ended by it. `lateByMs`: how long ago the
 * look was due. Of several changes one after the other, an end counts only for the last one. Pure.
 */
export function judgeRemedy(
  fired: Readonly<Record<string, number>>,
  {
    now,
    sentAt,
    lateByMs,
    isSuperseded,
  }: { now: AlertsOnVm | undefined; sentAt: number; lateByMs: number; isSuperseded: boolean },
): Readonly<Record<string, Verdict>> {
  const verdictOf = (name: string): Verdict => {
    const all = (now?.alerts ?? []).filter((one) => one.name === name);
    if (all.some(({ state }) => state === "firing")) return "failed";
    const isOver = all.length > 0 && all.every(({ state }) => state === "ended");
    const isInTime = Math.max(...all.map(({ endedAt = 0 }) => endedAt)) >= sentAt;
    return isOver && isInTime && !isSuperseded && lateByMs < lateMs ? "helped" : "unclear";
  };
  return Object.fromEntries(Object.keys(fired).map((name) => [name, verdictOf(name)]));
}

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
  const clear = attempts.filter(({ verdict }) => verdict !== "unclear");
  return [...Map.groupBy(clear, ({ command }) => command)].map(([command, all]) => {
    const [newest] = all;
    if (newest?.verdict === "helped") return { command, failures: 0, helpedAt: newest.at };
    const helped = all.findIndex(({ verdict }) => verdict === "helped");
    return { command, failures: helped < 0 ? all.length : helped };
  });
}
