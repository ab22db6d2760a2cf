import type { DataTableBlock, RichTextBlock } from "@slack/types";
import type { ChartPart, TablePart } from "./parts.ts";
import { wordsOf } from "./table.ts";

/**
 * A chart that Slack draws
 * (https://docs.slack.dev/reference/block-kit/blocks/data-visualization-block). @slack/types 3.2.0
 * lacks its type.
 */
export interface ChartBlock {
  type: "data_visualization";
  title: string;
  chart: {
    type: "line" | "bar";
    /** Each series has a value for each category, in the same order. */
    series: { name: string; data: { label: string; value: number }[] }[];
    axis_config: { categories: string[]; x_label?: string; y_label?: string };
  };
}

export function chartBlock({ form, title, categories, ...chart }: ChartPart): ChartBlock {
  const { series, xLabel, yLabel } = chart;
  return {
    type: "data_visualization",
    title,
    chart: {
      type: form,
      series: series.map(({ name, values }) => ({
        name,
        data: values.map((value, index) => ({ label: categories[index] ?? "", value })),
      })),
      axis_config: {
        categories: [...categories],
        ...(xLabel === undefined ? {} : { x_label: xLabel }),
        ...(yLabel === undefined ? {} : { y_label: yLabel }),
      },
    },
  };
}

/**
 * Slack turns the table's pages itself. This many rows can be read at a glance, on a phone, too.
 */
const rowsPerPage = 10;

/**
 * A table that Slack pages and sorts
 * (https://docs.slack.dev/reference/block-kit/blocks/data-table-block).
 */
export function tableBlock({ caption, columns, rows }: TablePart): DataTableBlock {
  // Slack sorts a column by number only if all its cells are numbers.
  const isNumeric = columns.map((_, index) =>
    rows.every((row) => /^\d{1,15}(\.\d+)?$/.test(wordsOf(row[index] ?? ""))),
  );
  return {
    type: "data_table",
    caption,
    page_size: rowsPerPage,
    rows: [
      columns.map((text) => ({ type: "raw_text", text })),
      ...rows.map((row) =>
        row.map((cell, index) => {
          if (typeof cell === "object") return timeCell(cell.at);
          return isNumeric[index]
            ? { type: "raw_number" as const, value: Number(cell), text: cell }
            : { type: "raw_text" as const, text: cell };
        }),
      ),
    ],
  };
}

const timeCell = (at: number): RichTextBlock => ({
  type: "rich_text",
  elements: [
    {
      type: "rich_text_section",
      elements: [
        {
          type: "date",
          timestamp: Math.floor(at / 1000),
          format: "{date_short_pretty} {time}",
          fallback: wordsOf({ at }),
        },
      ],
    },
  ],
});
