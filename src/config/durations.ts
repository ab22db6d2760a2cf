const unitMs = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };
// setTimeout fires at once when its delay is longer than 2^31-1 ms.
const longestMs = 24 * unitMs.d;

/** Converts `500ms`, `15s`, `2m`, `1h`, or `7d` to milliseconds. Undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const [, amount, unit = ""] = /^(\d{1,9}(?:\.\d{1,3})?)\s?(ms|s|m|h|d)$/.exec(text) ?? [];
  const [, length = 0] = Object.entries(unitMs).find(([name]) => name === unit) ?? [];
  const milliseconds = Math.round(Number(amount ?? 0) * length);
  return milliseconds > 0 && milliseconds <= longestMs ? milliseconds : undefined;
}

/** Writes a duration as the policy file does: 900,000 is 15m. */
export function durationWords(ms: number): string {
  const [unit, length] = Object.entries(unitMs).find(
    ([, each]) => ms >= each && ms % each === 0,
  ) ?? ["ms", 1];
  return `${ms / length}${unit}`;
}
