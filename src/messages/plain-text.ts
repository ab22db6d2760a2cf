import type { DataTableBlock } from "@slack/types";
import { shortNumber } from "../text/short-number.ts";
import { type Block, type Message, sections } from "./blocks.ts";
import { card, lineList } from "./card.ts";
import type { ChartBlock } from "./drawn-blocks.ts";
import { counted, lines, Markdown, md, plainWords } from "./markdown.ts";
import { linesOf } from "./parts.ts";

// The renderer of plain text begins with blocks, not with parts: Slack may refuse a message long after the process that
// knew its parts has stored it, and a program reads what people read.

/** The message with all its charts and tables as text. Undefined when it has none. */
export function inWords({ text, blocks }: Message): Message | undefined {
  const textBlocks = blocksInWords(blocks);
  return textBlocks && { text, blocks: textBlocks };
}

/** Replaces charts and tables among these blocks with text. Undefined when there are none. */
export function blocksInWords(blocks: readonly Block[]): Block[] | undefined {
  if (!blocks.some(linesDrawn)) return undefined;
  return blocks.flatMap((block) => {
    const rows = linesDrawn(block);
    return rows ? sections(rows) : block;
  });
}

/**
 * Replaces charts and tables with text after Slack refused them. Long tables are cut, and the
 * omitted rows are counted.
 */
export function inFewWords({ text, blocks }: Message): Message | undefined {
  if (!blocks.some(linesDrawn)) return undefined;
  const body = blocks.map((block) => {
    const rows = linesDrawn(block);
    if (rows === undefined) return { blocks: [block] };
    return block.type === "data_table" ? lineList(rows) : linesOf(rows);
  });
  return { ...card({ body }), text };
}

/** What a chart or a table says, line by line. Undefined for any other block. */
function linesDrawn(block: Block): Markdown[] | undefined {
  if (block.type === "data_visualization") return chartLines(block);
  return block.type === "data_table" ? tableLines(block) : undefined;
}

/** A whole message as plain text, without its buttons, for programs. */
export const plainTextOf = (shown: Message): string =>
  markdownOf(shown)
    .map((text) => plainWords(text))
    .join("\n");

/** The texts of a message, block by block, without its buttons. */
function markdownOf(shown: Message): Markdown[] {
  const { blocks } = inWords(shown) ?? shown;
  const texts = blocks.flatMap((block) => {
    if (block.type === "header") return [block.text];
    if (block.type === "section") return [block.text, ...(block.fields ?? [])];
    return block.type === "context" ? block.elements : [];
  });
  return texts.flatMap((text) => {
    if (!text || !("text" in text)) return [];
    return text.type === "plain_text" ? md`${text.text}` : new Markdown(text.text);
  });
}

/**
 * Slack's documentation names 4,000 characters for an edit. Measurements showed that bytes are
 * counted.
 */
const mostBytes = 3_900;
const bytesIn = (text: string) => Buffer.byteLength(text);

/**
 * A message as text alone, for a place where Slack refuses its blocks. It contains what they say,
 * as far as it fits, and how to do without its buttons.
 */
export function asText(shown: Message): Message {
  const hasButtons = shown.blocks.some((block) => block.type === "actions" || "accessory" in block);
  const note = hasButtons
    ? md`Slack refused the form of this message, so its buttons are missing. \`/gatehouse help\` lists the commands that do the same.`
    : undefined;
  const rows = markdownOf(shown).flatMap(({ value }) => value.split("\n"));
  let room = mostBytes - bytesIn(`${note?.value ?? ""}… ${rows.length} more lines\n\n`);
  const end = rows.findIndex((row) => (room -= bytesIn(row) + 1) < 0);
  const shownRows = end < 0 ? rows : rows.slice(0, end);
  const left = rows.length - shownRows.length;
  if (shownRows.length === 0) return { text: shown.text, blocks: [] };
  const more = left > 0 ? md`… ${counted(left, "more line")}` : undefined;
  return { text: lines(new Markdown(shownRows.join("\n")), more, note).value, blocks: [] };
}

function chartLines({ title, chart: { type, series, axis_config: axis } }: ChartBlock): Markdown[] {
  const rows = series.map(({ name, data }) => {
    const values = data.map(({ value }) => value);
    const [least, most] = [Math.min(...values), Math.max(...values)].map(shortNumber);
    return type === "line"
      ? md`${sparkline(values)} ${name}: ${least} to ${most}`
      : md`${data.map(({ label, value }) => `${shortNumber(value)} ${label}`).join(" · ")}`;
  });
  // The values of a line are peaks, which its axis says.
  const of = axis.x_label === undefined ? "" : ` · ${axis.x_label}`;
  return [md`*${title}*${of}`, ...rows];
}

const bars = Array.from("▁▂▃▄▅▆▇█");

export function sparkline(values: readonly number[]): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const barOf = (value: number) =>
    low === high ? 3 : Math.min(7, Math.floor(((value - low) / (high - low)) * 8));
  return values.map((value) => bars[barOf(value)]).join("");
}

function tableLines({ rows: [columns = [], ...rows] }: DataTableBlock): Markdown[] {
  const line = (row: DataTableBlock["rows"][number]) =>
    md`${row.map((cell) => ("text" in cell ? cell.text : "")).join(" · ")}`;
  return [md`*${line(columns)}*`, ...rows.map(line)];
}
