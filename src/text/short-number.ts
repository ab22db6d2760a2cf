/**
 * Three significant digits: `12.3`, `0.042`, `1,234`, `8.19M`, `3e-7`. The letters are powers of
 * 1,000, not units.
 */
export function shortNumber(value: number): string {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size < 0.001 || size >= 1e15) return value.toExponential(2).replace(/\.?0+e\+?/, "e");
  if (size < 1) return String(Number(value.toPrecision(3)));
  if (size < 1000) return String(Number(value.toFixed(1)));
  if (size < 100_000) return Math.round(value).toLocaleString("en-US");
  const power = Math.min(4, Math.floor(Math.log10(size) / 3));
  return `${Number((value / 1000 ** power).toPrecision(3))}${["", "k", "M", "G", "T"][power] ?? ""}`;
}
