import * as z from "zod"
import { button, feedbackButtons, iconButton, modalInputs, overflow, pickers, plainTextInput, richTextInput, selects, workflowButton } from "./elements.ts"
import { anyText, bare, blockId, imageElement, imageParts, items, mrkdwn, oneImage, plainText, upTo } from "./texts.ts"

/** Blocks and their limits. https://docs.slack.dev/reference/block-kit/blocks */

const block = <T extends string, S extends z.core.$ZodLooseShape>(type: T, shape: S) =>
  z.strictObject({ type: z.literal(type), block_id: blockId, ...shape })

const richText = block("rich_text", { elements: z.array(z.looseObject({ type: z.enum(["rich_text_section", "rich_text_list", "rich_text_quote", "rich_text_preformatted"]), elements: z.array(z.unknown()) })) })

const section = block("section", {
  text: anyText(3000).optional(),
  fields: items(anyText(2000), 10).optional(),
  accessory: z.discriminatedUnion("type", [button, ...selects, ...pickers, overflow, workflowButton, imageElement]).optional(),
  expand: z.boolean().optional(),
}).refine((value) => value.text !== undefined || value.fields !== undefined, "must define either `text` or `fields`")

const actions = block("actions", {
  elements: items(z.discriminatedUnion("type", [button, ...selects, ...pickers, overflow, workflowButton, richTextInput]), 25),
})

const input = block("input", {
  label: plainText(2000),
  hint: plainText(2000).optional(),
  optional: z.boolean().optional(),
  dispatch_action: z.boolean().optional(),
  element: z.discriminatedUnion("type", [plainTextInput, richTextInput, ...selects, ...pickers, ...modalInputs]),
})

const context = block("context", { elements: items(z.discriminatedUnion("type", [plainText(3000), mrkdwn(3000), imageElement]), 10) })
const divider = block("divider", {})
const header = block("header", { text: plainText(150) })
const image = block("image", { ...imageParts, title: plainText(2000).optional() }).refine(oneImage, "must define either `image_url` or `slack_file`")
const file = block("file", { source: z.literal("remote"), external_id: bare(255) })
const video = block("video", {
  video_url: bare(3000),
  thumbnail_url: bare(3000),
  alt_text: bare(2000),
  title: plainText(199),
  title_url: upTo(3000).optional(),
  author_name: upTo(49).optional(),
  provider_name: upTo(255).optional(),
  provider_icon_url: upTo(3000).optional(),
  description: plainText(199).optional(),
})

const rawText = z.strictObject({ type: z.literal("raw_text"), text: bare(10_000) })
const rawNumber = z.strictObject({ type: z.literal("raw_number"), value: z.number(), text: bare(10_000) })
const cell = z.discriminatedUnion("type", [rawText, rawNumber, richText])

const table = block("table", {
  rows: items(items(cell, 20), 100),
  column_settings: items(z.strictObject({ align: z.enum(["left", "center", "right"]).optional(), is_wrapped: z.boolean().optional() }).nullable(), 20, 0).optional(),
})

const dataTable = block("data_table", {
  rows: items(items(cell, 20), 101, 2),
  caption: bare(150),
  page_size: z.int().min(1).max(100).optional(),
  row_header_column_index: z.int().min(0).max(19).optional(),
}).refine((value) => new Set(value.rows.map((row) => row.length)).size === 1, "all rows must have the same number of cells")

const card = block("card", {
  hero_image: imageElement.optional(),
  icon: imageElement.optional(),
  title: mrkdwn(150).optional(),
  subtitle: mrkdwn(150).optional(),
  body: mrkdwn(200).optional(),
  actions: items(button, 5).optional(),
}).refine((value) => [value.hero_image, value.title, value.actions, value.body].some((part) => part !== undefined), "must define one of `hero_image`, `title`, `actions` or `body`")

const taskCard = (statuses: readonly string[]) =>
  block("task_card", {
    task_id: bare(255),
    title: bare(256),
    details: richText.optional(),
    output: richText.optional(),
    sources: z.array(z.looseObject({ type: z.literal("url") })).optional(),
    status: z.enum(statuses as [string, ...string[]]),
  })

const container = block("container", {
  title: plainText(150).optional(),
  rich_text_title: richText.optional(),
  subtitle: anyText(150).optional(),
  child_blocks: items(z.discriminatedUnion("type", [actions, context, divider, file, header, image, input, richText, section, table, video]), 10),
  width: z.enum(["narrow", "standard", "wide", "full"]).optional(),
  icon: imageElement.optional(),
  is_collapsible: z.boolean().optional(),
  default_collapsed: z.boolean().optional(),
  has_header_divider: z.boolean().optional(),
})

export const shapes = {
  actions,
  alert: block("alert", { text: anyText(3000), level: z.enum(["default", "info", "warning", "error", "success"]).optional() }),
  card,
  carousel: block("carousel", { elements: items(card, 10) }),
  container,
  context,
  context_actions: block("context_actions", { elements: items(z.discriminatedUnion("type", [feedbackButtons, iconButton]), 5) }),
  data_table: dataTable,
  // New in June 2026 and not in @slack/types yet: only its title's limit is sure.
  data_visualization: z.looseObject({ type: z.literal("data_visualization"), block_id: blockId, title: upTo(50).optional() }),
  divider,
  file,
  header,
  image,
  input,
  markdown: block("markdown", { text: bare(12_000) }),
  plan: block("plan", { title: bare(256), tasks: z.array(taskCard(["pending", "in_progress", "complete", "error"])).optional() }),
  rich_text: richText,
  section,
  table,
  task_card: taskCard(["in_progress", "complete", "error"]),
  video,
} satisfies Record<string, z.ZodType>

export type Surface = "message" | "modal" | "home"

/** Where each block may stand; what isn't named may stand anywhere. */
export const surfaces: Partial<Record<keyof typeof shapes, readonly Surface[]>> = {
  alert: ["modal"],
  carousel: ["message", "home"],
  container: ["message", "home"],
  context_actions: ["message"],
  data_table: ["message", "home"],
  data_visualization: ["message"],
  file: ["message"],
  markdown: ["message"],
  plan: ["message"],
  table: ["message", "home"],
  task_card: ["message"],
}

export const modalOnlyInputs: readonly string[] = ["email_text_input", "url_text_input", "number_input", "file_input"]
