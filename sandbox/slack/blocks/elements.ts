import * as z from "zod";
import {
  actionId,
  bare,
  color,
  confirm,
  dispatchConfig,
  items,
  option,
  optionGroup,
  overflowOption,
  plainOption,
  plainText,
  upTo,
} from "./texts.ts";

/** Interactive elements. https://docs.slack.dev/reference/block-kit/block-elements */

const focus = z.boolean().optional();
const placeholder = plainText(150).optional();
const select = { action_id: actionId, confirm, focus_on_load: focus, placeholder };
const several = { ...select, max_selected_items: z.int().min(1).optional() };
const date = z.string().regex(/^\d{4}-\d{2}-\d{2}$/, "must be YYYY-MM-DD");

export const button = z.strictObject({
  type: z.literal("button"),
  text: plainText(75),
  action_id: actionId,
  value: upTo(2000).optional(),
  url: upTo(3000).optional(),
  style: color,
  confirm,
  accessibility_label: upTo(75).optional(),
});

const choices = {
  options: items(plainOption, 100).optional(),
  option_groups: items(optionGroup, 100).optional(),
};
const eitherChoices = [
  (value: { options?: unknown; option_groups?: unknown }) =>
    (value.options === undefined) !== (value.option_groups === undefined),
  "must define either `options` or `option_groups`",
] as const;

const conversationFilter = z
  .strictObject({
    include: items(z.enum(["im", "mpim", "private", "public"]), 4).optional(),
    exclude_external_shared_channels: z.boolean().optional(),
    exclude_bot_users: z.boolean().optional(),
  })
  .optional();
const responds = { response_url_enabled: z.boolean().optional() };
const queryLength = { min_query_length: z.int().min(0).optional() };
const conversations = {
  default_to_current_conversation: z.boolean().optional(),
  filter: conversationFilter,
};

const typed = {
  action_id: actionId,
  focus_on_load: focus,
  placeholder,
  dispatch_action_config: dispatchConfig,
};

export const selects = [
  z
    .strictObject({
      type: z.literal("static_select"),
      ...select,
      ...choices,
      initial_option: plainOption.optional(),
    })
    .refine(...eitherChoices),
  z.strictObject({
    type: z.literal("external_select"),
    ...select,
    ...queryLength,
    initial_option: plainOption.optional(),
  }),
  z.strictObject({
    type: z.literal("users_select"),
    ...select,
    initial_user: bare(255).optional(),
  }),
  z.strictObject({
    type: z.literal("conversations_select"),
    ...select,
    ...responds,
    ...conversations,
    initial_conversation: bare(255).optional(),
  }),
  z.strictObject({
    type: z.literal("channels_select"),
    ...select,
    ...responds,
    initial_channel: bare(255).optional(),
  }),
  z
    .strictObject({
      type: z.literal("multi_static_select"),
      ...several,
      ...choices,
      initial_options: items(plainOption, 100).optional(),
    })
    .refine(...eitherChoices),
  z.strictObject({
    type: z.literal("multi_external_select"),
    ...several,
    ...queryLength,
    initial_options: items(plainOption, 100).optional(),
  }),
  z.strictObject({
    type: z.literal("multi_users_select"),
    ...several,
    initial_users: items(bare(255), 100).optional(),
  }),
  z.strictObject({
    type: z.literal("multi_conversations_select"),
    ...several,
    ...conversations,
    initial_conversations: items(bare(255), 100).optional(),
  }),
  z.strictObject({
    type: z.literal("multi_channels_select"),
    ...several,
    initial_channels: items(bare(255), 100).optional(),
  }),
] as const;

export const pickers = [
  z.strictObject({
    type: z.literal("checkboxes"),
    action_id: actionId,
    confirm,
    focus_on_load: focus,
    options: items(option, 10),
    initial_options: items(option, 10).optional(),
  }),
  z.strictObject({
    type: z.literal("radio_buttons"),
    action_id: actionId,
    confirm,
    focus_on_load: focus,
    options: items(option, 10),
    initial_option: option.optional(),
  }),
  z.strictObject({ type: z.literal("datepicker"), ...select, initial_date: date.optional() }),
  z.strictObject({
    type: z.literal("timepicker"),
    ...select,
    initial_time: z
      .string()
      .regex(/^\d{2}:\d{2}$/)
      .optional(),
    timezone: bare(255).optional(),
  }),
  z.strictObject({
    type: z.literal("datetimepicker"),
    action_id: actionId,
    confirm,
    focus_on_load: focus,
    initial_date_time: z.int().optional(),
  }),
] as const;

export const overflow = z.strictObject({
  type: z.literal("overflow"),
  action_id: actionId,
  confirm,
  options: items(overflowOption, 5),
});

export const workflowButton = z.strictObject({
  type: z.literal("workflow_button"),
  text: plainText(75),
  action_id: actionId,
  workflow: z.looseObject({}),
  style: color,
  accessibility_label: upTo(75).optional(),
});

export const plainTextInput = z.strictObject({
  type: z.literal("plain_text_input"),
  ...typed,
  initial_value: upTo(3000).optional(),
  multiline: z.boolean().optional(),
  min_length: z.int().min(0).max(3000).optional(),
  max_length: z.int().min(1).max(3000).optional(),
});

export const richTextInput = z.strictObject({
  type: z.literal("rich_text_input"),
  ...typed,
  initial_value: z.looseObject({ type: z.literal("rich_text") }).optional(),
  min_lines: z.int().optional(),
  max_lines: z.int().optional(),
});

/** Inputs that only modals take. */
export const modalInputs = [
  z.strictObject({
    type: z.literal("email_text_input"),
    ...typed,
    initial_value: z.string().optional(),
  }),
  z.strictObject({
    type: z.literal("url_text_input"),
    ...typed,
    initial_value: z.string().optional(),
  }),
  z.strictObject({
    type: z.literal("number_input"),
    ...typed,
    is_decimal_allowed: z.boolean(),
    initial_value: z.string().optional(),
    min_value: z.string().optional(),
    max_value: z.string().optional(),
  }),
  z.strictObject({
    type: z.literal("file_input"),
    action_id: actionId,
    filetypes: z.array(bare(255)).optional(),
    max_files: z.int().min(1).max(10).optional(),
  }),
] as const;

const feedback = z.strictObject({
  text: plainText(75),
  accessibility_label: upTo(75).optional(),
  value: upTo(2000),
});
export const feedbackButtons = z.strictObject({
  type: z.literal("feedback_buttons"),
  action_id: actionId,
  positive_button: feedback,
  negative_button: feedback,
});
export const iconButton = z.strictObject({
  type: z.literal("icon_button"),
  action_id: actionId,
  confirm,
  icon: z.literal("trash"),
  text: plainText(75),
  accessibility_label: upTo(75).optional(),
  value: upTo(2000).optional(),
  visible_to_user_ids: z.array(bare(255)).optional(),
});
