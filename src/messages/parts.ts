import type { ButtonSpec } from "./buttons.ts";
import type { Markdown } from "./markdown.ts";

/** A pair of label and value. */
export type Pair = readonly [label: string, value: Markdown];

/** A part of a message, before its renderer makes blocks of it. */
export type SaidPart =
  | { kind: "heading"; text: string }
  | {
      kind: "paragraph";
      text: Markdown;
      beside: ButtonSpec | readonly ButtonSpec[] | undefined;
    }
  | { kind: "lines"; rows: readonly Markdown[] }
  | { kind: "small"; texts: readonly Markdown[] }
  | { kind: "pairs"; pairs: readonly (Pair | undefined)[] }
  | { kind: "ways"; ways: readonly ButtonSpec[] }
  | MenuPart
  | TablePart
  | ChartPart
  | { kind: "rule" };

/** A menu. Choosing an option arrives like a pressed button. */
interface MenuPart {
  kind: "menu";
  /** Shown until something is chosen. */
  label: string;
  action: string;
  options: readonly (readonly [label: string, value: string])[];
}

/** Text, or a time (ms), which everyone reads in their own zone. */
export type Cell = string | { readonly at: number };

/** A table of at least one row; each row has a cell for each column. `table` makes one that fits. */
export interface TablePart {
  kind: "table";
  caption: string;
  columns: readonly string[];
  rows: readonly (readonly Cell[])[];
}

/** A chart. Each series has a value for each category, in the same order. */
export interface ChartPart {
  kind: "chart";
  form: "line" | "bar";
  title: string;
  series: readonly { name: string; values: readonly number[] }[];
  categories: readonly string[];
  /** What the categories are: `Peak of each 5 min, time in UTC`. */
  xLabel?: string;
  /** What the values count: `VMs`. */
  yLabel?: string;
}

/** A title as large as a page's. */
export const headingOf = (text: string): SaidPart => ({ kind: "heading", text });

/** A paragraph, with a button next to it, or a menu of several. */
export const paragraph = (
  text: Markdown,
  beside?: ButtonSpec | readonly ButtonSpec[],
): SaidPart => ({ kind: "paragraph", text, beside });

/** Lines of text, of any number and length together. */
export const linesOf = (rows: readonly Markdown[]): SaidPart => ({ kind: "lines", rows });

/** Small print: several texts are in one line where there is space. */
export const small = (...texts: readonly Markdown[]): SaidPart => ({ kind: "small", texts });

/** Pairs of label and value in two columns. Only the first 10 are shown. */
export const pairsOf = (pairs: readonly (Pair | undefined)[]): SaidPart => ({
  kind: "pairs",
  pairs,
});

/** Buttons in a row. Without buttons nothing is shown. */
export const waysRow = (ways: readonly ButtonSpec[]): SaidPart => ({ kind: "ways", ways });

/** A menu of at most 100 options. Without options nothing is shown. */
export const menuRow = (menu: Omit<MenuPart, "kind">): SaidPart => ({ kind: "menu", ...menu });

/** A line between what is above and below it. */
export const rule: SaidPart = { kind: "rule" };

export const isSaidPart = (part: object): part is SaidPart => "kind" in part;
