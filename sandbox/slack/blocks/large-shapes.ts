import * as z from "zod";
import { button } from "./elements.ts";
import { bare, block, imageElement, items, mrkdwn, upTo } from "./texts.ts";

/** The blocks that hold many things. https://docs.slack.dev/reference/block-kit/blocks */

export const richText = block("rich_text", {
  elements: z.array(
    z.looseObject({
      type: z.enum([
        "rich_text_section",
        "rich_text_list",
        "rich_text_quote",
        "rich_text_preformatted",
      ]),
      elements: z.array(z.unknown()),
    }),
  ),
});

const rawText = z.strictObject({ type: z.literal("raw_text"), text: bare(10_000) });
const rawNumber = z.strictObject({
  type: z.literal("raw_number"),
  value: z.number(),
  text: bare(10_000),
});
const cell = z.discriminatedUnion("type", [rawText, rawNumber, richText]);

export const table = block("table", {
  rows: items(items(cell, 20), 100),
  column_settings: items(
    z
      .strictObject({
        align: z.enum(["left", "center", "right"]).optional(),
        is_wrapped: z.boolean().optional(),
      })
      .nullable(),
    20,
    0,
  ).optional(),
});

export const dataTable = block("data_table", {
  rows: items(items(cell, 20), 101, 2),
  caption: bare(150),
  page_size: z.int().min(1).max(100).optional(),
  row_header_column_index: z.int().min(0).max(19).optional(),
})
  .refine(
    (value) => new Set(value.rows.map((row) => row.length)).size === 1,
    "all rows must have the same number of cells",
  )
  .refine(
    ({ rows }) => rows[0]?.every(({ type }) => type !== "rich_text"),
    "header cells must not be rich_text",
  );

const point = z.strictObject({ label: bare(20), value: z.number() });
const series = z.strictObject({ name: bare(20), data: items(point, 20) });
const labels = (named: readonly { label: string }[]) => named.map(({ label }) => label).toSorted();

/** Each line, bar or area has one value for each category. */
const axes = <const T extends string>(type: T) =>
  z
    .strictObject({
      type: z.literal(type),
      series: items(series, 12),
      axis_config: z.strictObject({
        categories: items(bare(20), 20),
        x_label: upTo(50).optional(),
        y_label: upTo(50).optional(),
      }),
    })
    .refine(
      (chart) => new Set(chart.series.map(({ name }) => name)).size === chart.series.length,
      "series must have unique names",
    )
    .refine(({ series: all, axis_config: { categories } }) => {
      const wanted = JSON.stringify([...new Set(categories)].toSorted());
      return (
        new Set(categories).size === categories.length &&
        all.every(({ data }) => JSON.stringify(labels(data)) === wanted)
      );
    }, "each series must have one data point for each category");

/** https://docs.slack.dev/reference/block-kit/blocks/data-visualization-block */
export const dataVisualization = block("data_visualization", {
  title: bare(50),
  chart: z.discriminatedUnion("type", [
    axes("line"),
    axes("bar"),
    axes("area"),
    z.strictObject({
      type: z.literal("pie"),
      segments: items(z.strictObject({ label: bare(20), value: z.number().positive() }), 12),
    }),
  ]),
});

export const card = block("card", {
  hero_image: imageElement.optional(),
  icon: imageElement.optional(),
  title: mrkdwn(150).optional(),
  subtitle: mrkdwn(150).optional(),
  body: mrkdwn(200).optional(),
  actions: items(button, 5).optional(),
}).refine(
  (value) =>
    [value.hero_image, value.title, value.actions, value.body].some((part) => part !== undefined),
  "must define one of `hero_image`, `title`, `actions` or `body`",
);

export const taskCard = <const S extends readonly [string, ...string[]]>(statuses: S) =>
  block("task_card", {
    task_id: bare(255),
    title: bare(256),
    details: richText.optional(),
    output: richText.optional(),
    sources: z.array(z.looseObject({ type: z.literal("url") })).optional(),
    status: z.enum(statuses),
  });
