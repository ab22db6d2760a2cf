/** One line of the bench. Without a bound it is only told. */
export interface Figure {
  name: string;
  value: number;
  unit: string;
  bound?: number;
  /** Against a peer in the same run: how many times its figure, at most `bound` or at least `least` times. */
  ratio?: { to: string; times: number; bound?: number; least?: number };
}

export const holds = ({ value, bound = Infinity, ratio }: Figure): boolean =>
  value <= bound &&
  (ratio?.times ?? 0) <= (ratio?.bound ?? Infinity) &&
  (ratio?.times ?? Infinity) >= (ratio?.least ?? 0);

/** The value below which this part (0 to 1) of them lies. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

/** A table in Markdown: it goes into docs/figures.md as it is. */
export function renderFigures(figures: readonly Figure[]): string {
  const rows = figures.map((figure) => {
    const { name, value, unit, bound, ratio } = figure;
    const against = ratio === undefined ? "" : `; ${short(ratio.times)} × ${ratio.to}`;
    const most = [
      bound !== undefined && `≤ ${short(bound)} ${unit}`,
      ratio?.bound !== undefined && `≤ ${short(ratio.bound)} ×`,
      ratio?.least !== undefined && `≥ ${short(ratio.least)} ×`,
    ].filter((one) => one !== false);
    const verdict = most.length === 0 ? "" : holds(figure) ? "holds" : "**does not hold**";
    return `| ${name} | ${short(value)} ${unit}${against} | ${most.join(", ")} | ${verdict} |`.replaceAll(
      / +\|/g,
      " |",
    );
  });
  return ["| figure | measured | bound | |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

function short(value: number): string {
  if (value !== 0 && Math.abs(value) < 1) return value.toPrecision(2);
  return Math.abs(value) < 10 ? String(Number(value.toFixed(2))) : String(Math.round(value));
}
