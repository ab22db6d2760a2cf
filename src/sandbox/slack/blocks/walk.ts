import { type Fields, isFields, textOf } from "../fields.ts";

const interactive = new Set([
  "button",
  "channels_select",
  "checkboxes",
  "conversations_select",
  "datepicker",
  "datetimepicker",
  "email_text_input",
  "external_select",
  "feedback_buttons",
  "file_input",
  "icon_button",
  "multi_channels_select",
  "multi_conversations_select",
  "multi_external_select",
  "multi_static_select",
  "multi_users_select",
  "number_input",
  "overflow",
  "plain_text_input",
  "radio_buttons",
  "rich_text_input",
  "static_select",
  "timepicker",
  "url_text_input",
  "users_select",
  "workflow_button",
]);

export function isInteractive(value: Fields): boolean {
  return interactive.has(textOf(value["type"]));
}

export interface Found {
  element: Fields;
  /** The innermost block around it that has an id. */
  block: Fields;
  blockId: string;
  actionId: string;
}

/** Every interactive element in the blocks, in reading order. */
export function elementsIn(blocks: readonly Fields[]): Found[] {
  return blocks.flatMap((block) => within(block, block));
}

function within(value: unknown, block: Fields): Found[] {
  if (Array.isArray(value)) return value.flatMap((item) => within(item, block));
  if (!isFields(value)) return [];
  if (isInteractive(value)) {
    const blockId = textOf(block["block_id"]);
    return [{ element: value, block, blockId, actionId: textOf(value["action_id"]) }];
  }
  const around = typeof value["block_id"] === "string" ? value : block;
  return Object.values(value).flatMap((inner) =>
    typeof inner === "object" ? within(inner, around) : [],
  );
}
