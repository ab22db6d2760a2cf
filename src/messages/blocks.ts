import type { KnownBlock } from "@slack/types";
import { button, buttons, menu, menuOf } from "./button-elements.ts";
import type { ButtonSpec } from "./buttons.ts";
import { type ChartBlock, chartBlock, tableBlock } from "./drawn-blocks.ts";
import { limits } from "./limits.ts";
import { Markdown, escape, lines } from "./markdown.ts";
import type { Pair, SaidPart } from "./parts.ts";
import { mrkdwn, plainText } from "./text-objects.ts";

/**
 * `text` is for notifications and screen readers; `blocks` are shown. The builders below cut
 * visibly at Slack's limits (https://docs.slack.dev/reference/block-kit/blocks), so that no message
 * is refused for its size.
 */
export interface Message {
  text: string;
  blocks: Block[];
}

export type Block = KnownBlock | ChartBlock;

/** A section with one button next to its text, or a menu of several. */
export function section(text: Markdown, beside?: ButtonSpec | readonly ButtonSpec[]): KnownBlock {
  const block = { type: "section" as const, text: mrkdwn(text, limits.section) };
  if (!beside) return block;
  return { ...block, accessory: "label" in beside ? button(beside) : menuOf(beside) };
}

/** One row per line, in as few sections as Slack's limit allows. */
export function sections(rows: readonly Markdown[]): KnownBlock[] {
  const texts: Markdown[] = [];
  for (const row of rows) {
    const longer = lines(texts.at(-1), row);
    if (longer.value.length <= limits.section) texts.splice(-1, 1, longer);
    else texts.push(row);
  }
  return texts.map((text) => section(text));
}

/** Pairs of label and value in two columns. Only the first 10 are shown. */
export function fields(pairs: readonly (Pair | undefined)[]): KnownBlock {
  const shown = pairs.filter((pair) => pair !== undefined).slice(0, 10);
  return {
    type: "section",
    fields: shown.map(([label, value]) =>
      mrkdwn(new Markdown(`*${escape(label)}*\n${value.value}`), 2000),
    ),
  };
}

export function header(text: string): KnownBlock {
  return { type: "header", text: plainText(text, limits.header) };
}

export function context(...texts: readonly Markdown[]): KnownBlock {
  return {
    type: "context",
    elements: texts.slice(0, limits.context).map((text) => mrkdwn(text, limits.section)),
  };
}

export const divider: KnownBlock = { type: "divider" };

/** Makes blocks of a part: the renderer of messages, forms, and the Home tab. */
export function blocksOfPart(part: SaidPart): readonly Block[] {
  switch (part.kind) {
    case "heading":
      return [header(part.text)];
    case "paragraph":
      return [section(part.text, part.beside)];
    case "lines":
      return sections(part.rows);
    case "small":
      return [context(...part.texts)];
    case "pairs":
      return [fields(part.pairs)];
    case "ways":
      return buttons(part.ways);
    case "menu":
      return menu(part);
    case "table":
      return [tableBlock(part)];
    case "chart":
      return [chartBlock(part)];
    case "rule":
      return [divider];
    default:
      return part satisfies never;
  }
}
