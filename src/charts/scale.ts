/** Round numbers along an axis, and what they span. */
export interface Scale {
  from: number;
  to: number;
  ticks: readonly number[];
}

/**
 * A value axis over `low`…`high` with about `wanted` steps of 1, 2 or 5. It begins at zero unless there are values below:
 * a line high above its axis would look more dramatic than it is.
 */
export function valueScale(low: number, high: number, wanted = 4): Scale {
  const [bottom, top] = [Math.min(0, low), Math.max(0, high)];
  // A span of nothing, or too small to be divided, becomes one
  const step = roundStep((top - bottom > 1e-290 ? top - bottom : 1) / wanted);
  const first = Math.floor(bottom / step);
  const last = Math.max(first + 1, Math.ceil(top / step));
  const ticks = Array.from({ length: last - first + 1 }, (_, index) =>
    clean((first + index) * step, step),
  );
  return { from: ticks[0] ?? 0, to: ticks.at(-1) ?? 1, ticks };
}

function roundStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5].find((one) => rough <= one * power * 1.0001) ?? 10;
  return factor * power;
}

/** 0.30000000000000004 → 0.3. */
function clean(value: number, step: number): number {
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  return digits <= 100 ? Number(value.toFixed(digits)) : value;
}

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

const timeSteps = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * second),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * minute),
  ...[1, 2, 3, 6, 12].map((count) => count * hour),
  ...[1, 2, 7, 14, 30, 60, 90, 180, 365].map((count) => count * day),
];

export interface TimeTick {
  at: number;
  /** `14:30`, at midnight `20 Nov`. */
  label: string;
}

/** Round moments in UTC between two times, at most `most` of them. */
export function timeTicks(from: number, to: number, most = 6): TimeTick[] {
  const span = Math.max(1, to - from);
  const step = timeSteps.find((one) => span / one <= most) ?? Math.ceil(span / most / day) * day;
  const ticks: TimeTick[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to && ticks.length <= most; at += step)
    ticks.push({ at, label: timeLabel(at, step, span) });
  return ticks;
}

const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

function timeLabel(at: number, step: number, span: number): string {
  const date = new Date(at);
  const iso = Number.isNaN(date.getTime()) ? "" : date.toISOString();
  const isMidnight = at % day === 0;
  if (step >= day || (isMidnight && step >= minute)) {
    const text = `${date.getUTCDate()} ${months[date.getUTCMonth()] ?? ""}`;
    return span > 300 * day ? `${text} ${date.getUTCFullYear()}` : text;
  }
  return iso.slice(11, step < minute ? 19 : 16);
}
