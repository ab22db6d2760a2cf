const bars = Array.from("▁▂▃▄▅▆▇█");

/**
 * Values as a row of at most `most` bars, from the lowest of them to the highest; the highest of each stretch counts, so
 * that a spike stays. A gap is a blank; equal values are a flat line; nothing known is an empty text.
 */
export function sparkline(values: readonly number[], most = 30): string {
  const columns = Math.min(most, values.length);
  const peaks = Array.from({ length: columns }, (_, index) => {
    const from = Math.floor((index * values.length) / columns);
    const to = Math.floor(((index + 1) * values.length) / columns);
    const known = values.slice(from, to).filter((value) => Number.isFinite(value));
    return known.length === 0 ? Number.NaN : known.reduce((a, b) => Math.max(a, b));
  });
  const known = peaks.filter((value) => Number.isFinite(value));
  if (known.length === 0) return "";
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return peaks.map((value) => (Number.isFinite(value) ? barOf(value, low, high) : " ")).join("");
}

function barOf(value: number, low: number, high: number): string {
  if (low === high) return bars[3] ?? "";
  // halved first: the difference of two huge values would be infinite
  const part = (value / 2 - low / 2) / (high / 2 - low / 2);
  return bars[Math.min(bars.length - 1, Math.floor(part * bars.length))] ?? "";
}
