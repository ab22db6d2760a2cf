import { type Block, context, divider, fields, section } from "./blocks.ts";
import { type ButtonSpec, buttons } from "./buttons.ts";
import type { Markdown } from "./markdown.ts";

/** A part of a message, before its renderer makes blocks of it. */
export type SaidPart =
  | {
      kind: "paragraph";
      text: Markdown;
      beside: ButtonSpec | readonly ButtonSpec[] | undefined;
    }
  | { kind: "small"; texts: readonly Markdown[] }
  | { kind: "pairs"; pairs: Parameters<typeof fields>[0] }
  | { kind: "ways"; ways: readonly ButtonSpec[] }
  | { kind: "rule" };

/** A paragraph, with a button next to it, or a menu of several. */
export const paragraph = (
  text: Markdown,
  beside?: ButtonSpec | readonly ButtonSpec[],
): SaidPart => ({ kind: "paragraph", text, beside });

/** Small print: several texts are in one line where there is space. */
export const small = (...texts: readonly Markdown[]): SaidPart => ({ kind: "small", texts });

/** Pairs of label and value in two columns. Only the first 10 are shown. */
export const pairsOf = (pairs: Parameters<typeof fields>[0]): SaidPart => ({
  kind: "pairs",
  pairs,
});

/** Buttons in a row. */
export const waysRow = (ways: readonly ButtonSpec[]): SaidPart => ({ kind: "ways", ways });

/** A line between what is above and below it. */
export const rule: SaidPart = { kind: "rule" };

export const isSaidPart = (part: object): part is SaidPart => "kind" in part;

export function blocksOfPart(part: SaidPart): readonly Block[] {
  switch (part.kind) {
    case "paragraph":
      return [section(part.text, part.beside)];
    case "small":
      return [context(...part.texts)];
    case "pairs":
      return [fields(part.pairs)];
    case "ways":
      return buttons(part.ways);
    case "rule":
      return [divider];
    default:
      return part satisfies never;
  }
}
