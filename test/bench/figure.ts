/** One row of docs/figures.md. */
export interface Figure {
  /** Names what is measured, in the order of the values. */
  name: string;
  values: readonly Measured[];
}

/** Without a bound it is only told. `×` is against a peer in the same run. */
export interface Measured {
  value: number;
  unit: string;
  most?: number;
  least?: number;
}

const holds = ({ value, most = Infinity, least = -Infinity }: Measured): boolean =>
  value <= most && value >= least;

export const allHold = (figures: readonly Figure[]): boolean =>
  figures.every(({ values }) => values.every(holds));

/** The value below which this part (0 to 1) of them lies. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

/** A table in Markdown, as it stands in docs/figures.md. */
export function renderFigures(figures: readonly Figure[]): string {
  const rows = figures.map(({ name, values }) => {
    const measured = values.map(
      (one) => `${told(one.value, one.unit)}${holds(one) ? "" : " (over)"}`,
    );
    return `| ${name} | ${measured.join(", ")} | ${boundsOf(values)} |`;
  });
  return ["| figure | measured | bound |", "| --- | --- | --- |", ...rows].join("\n");
}

function boundsOf(values: readonly Measured[]): string {
  const bounds = values.flatMap(({ unit, most, least }) => [
    ...(most === undefined ? [] : [told(most, unit)]),
    ...(least === undefined ? [] : [`at least ${told(least, unit)}`]),
  ]);
  const [only] = new Set(bounds);
  return bounds.length > 1 && bounds.every((one) => one === only)
    ? `${only} each`
    : bounds.join(", ");
}

const told = (value: number, unit: string): string => `${short(value)} ${unit}`.trim();

function short(value: number): string {
  if (value !== 0 && Math.abs(value) < 1) return value.toPrecision(2);
  return Math.abs(value) < 10
    ? String(Number(value.toFixed(2)))
    : Math.round(value).toLocaleString("en");
}
