import * as z from "zod";
import { button } from "./elements.ts";
import { bare, block, imageElement, items, mrkdwn } from "./texts.ts";

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
}).refine(
  (value) => new Set(value.rows.map((row) => row.length)).size === 1,
  "all rows must have the same number of cells",
);

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
