import * as z from "zod";
import {
  button,
  feedbackButtons,
  iconButton,
  modalInputs,
  overflow,
  pickers,
  plainTextInput,
  richTextInput,
  selects,
  workflowButton,
} from "./elements.ts";
import { card, dataTable, dataVisualization, richText, table, taskCard } from "./large-shapes.ts";
import {
  anyText,
  bare,
  block,
  imageElement,
  imageParts,
  items,
  mrkdwn,
  oneImage,
  plainText,
  upTo,
} from "./texts.ts";

/** Blocks and their limits, those of `large-shapes.ts` among them. https://docs.slack.dev/reference/block-kit/blocks */

const section = block("section", {
  text: anyText(3000).optional(),
  fields: items(anyText(2000), 10).optional(),
  accessory: z
    .discriminatedUnion("type", [
      button,
      ...selects,
      ...pickers,
      overflow,
      workflowButton,
      imageElement,
    ])
    .optional(),
  expand: z.boolean().optional(),
}).refine(
  (value) => value.text !== undefined || value.fields !== undefined,
  "must define either `text` or `fields`",
);

const actions = block("actions", {
  elements: items(
    z.discriminatedUnion("type", [
      button,
      ...selects,
      ...pickers,
      overflow,
      workflowButton,
      richTextInput,
    ]),
    25,
  ),
});

const input = block("input", {
  label: plainText(2000),
  hint: plainText(2000).optional(),
  optional: z.boolean().optional(),
  dispatch_action: z.boolean().optional(),
  element: z.discriminatedUnion("type", [
    plainTextInput,
    richTextInput,
    ...selects,
    ...pickers,
    ...modalInputs,
  ]),
});

const context = block("context", {
  elements: items(z.discriminatedUnion("type", [plainText(3000), mrkdwn(3000), imageElement]), 10),
});
const divider = block("divider", {});
const header = block("header", { text: plainText(150) });
const image = block("image", { ...imageParts, title: plainText(2000).optional() }).refine(
  oneImage,
  "must define either `image_url` or `slack_file`",
);
const file = block("file", { source: z.literal("remote"), external_id: bare(255) });
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
});

const container = block("container", {
  title: plainText(150).optional(),
  rich_text_title: richText.optional(),
  subtitle: anyText(150).optional(),
  child_blocks: items(
    z.discriminatedUnion("type", [
      actions,
      context,
      divider,
      file,
      header,
      image,
      input,
      richText,
      section,
      table,
      video,
    ]),
    10,
  ),
  width: z.enum(["narrow", "standard", "wide", "full"]).optional(),
  icon: imageElement.optional(),
  is_collapsible: z.boolean().optional(),
  default_collapsed: z.boolean().optional(),
  has_header_divider: z.boolean().optional(),
});

export const shapes = {
  actions,
  alert: block("alert", {
    text: anyText(3000),
    level: z.enum(["default", "info", "warning", "error", "success"]).optional(),
  }),
  card,
  carousel: block("carousel", { elements: items(card, 10) }),
  container,
  context,
  context_actions: block("context_actions", {
    elements: items(z.discriminatedUnion("type", [feedbackButtons, iconButton]), 5),
  }),
  data_table: dataTable,
  data_visualization: dataVisualization,
  divider,
  file,
  header,
  image,
  input,
  markdown: block("markdown", { text: bare(12_000) }),
  plan: block("plan", {
    title: bare(256),
    tasks: z.array(taskCard(["pending", "in_progress", "complete", "error"])).optional(),
  }),
  rich_text: richText,
  section,
  table,
  task_card: taskCard(["in_progress", "complete", "error"]),
  video,
} satisfies Record<string, z.ZodType>;
