import type { DataTableBlock } from "@slack/types";
import {
  lines,
  Markdown,
  md,
  type ChartBlock,
  message,
  type Message,
  plainWords,
  section,
  sections,
} from "../messages/message.ts";
import { shortNumber } from "./chart.ts";

/** A message with its charts and tables as text, for where Slack refuses them. Undefined when it has none. */
export function inWords({ text, blocks }: Message): Message | undefined {
  const said = blocks.map((block) => {
    if (block.type === "data_visualization") return chartWords(block);
    return block.type === "data_table" ? tableWords(block) : block;
  });
  if (said.every((one, index) => one === blocks[index])) return undefined;
  return message(new Markdown(text), ...said);
}

/** All of a message as plain text, without its buttons: for programs. */
export function plainTextOf(shown: Message): string {
  const { blocks } = inWords(shown) ?? shown;
  const texts = blocks.flatMap((block) => {
    if (block.type === "header") return [block.text];
    if (block.type === "section") return [block.text, ...(block.fields ?? [])];
    return block.type === "context" ? block.elements : [];
  });
  return texts
    .flatMap((one) => (one && "text" in one ? [plainWords(new Markdown(one.text))] : []))
    .join("\n");
}

function chartWords({ title, chart: { type, series } }: ChartBlock) {
  const rows = series.map(({ name, data }) => {
    const values = data.map(({ value }) => value);
    const [least, most] = [Math.min(...values), Math.max(...values)].map(shortNumber);
    return type === "line"
      ? md`${sparkline(values)} ${name}: ${least} to ${most}`
      : md`${data.map(({ label, value }) => `${shortNumber(value)} ${label}`).join(" · ")}`;
  });
  return section(lines(md`*${title}*`, ...rows));
}

const bars = Array.from("▁▂▃▄▅▆▇█");

export function sparkline(values: readonly number[]): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const barOf = (value: number) =>
    low === high ? 3 : Math.min(7, Math.floor(((value - low) / (high - low)) * 8));
  return values.map((value) => bars[barOf(value)]).join("");
}

function tableWords({ rows: [columns = [], ...rows] }: DataTableBlock) {
  const line = (row: DataTableBlock["rows"][number]) =>
    md`${row.map((cell) => ("text" in cell ? cell.text : "")).join(" · ")}`;
  return sections([md`*${line(columns)}*`, ...rows.map(line)]);
}
