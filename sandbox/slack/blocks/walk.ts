import { randomBytes } from "node:crypto";
import { copyOf, type Fields, isFields, textOf, wordsOf } from "../fields.ts";
import type { SeenBlock } from "../seen.ts";

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

function isInteractive(value: Fields): boolean {
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

const randomId = () => randomBytes(4).toString("base64url").slice(0, 5);

/** A copy of the blocks in which every block and every interactive element has its id: Slack makes up the missing ones. */
export function withIds(blocks: readonly Fields[]): SeenBlock[] {
  return blocks.map((block) => {
    const copy = copyOf(block);
    nameElements(copy);
    return {
      ...copy,
      type: textOf(copy["type"]),
      block_id: textOf(copy["block_id"]) || randomId(),
    };
  });
}

function nameElements(value: unknown): void {
  if (Array.isArray(value)) {
    for (const item of value) nameElements(item);
  } else if (isFields(value)) {
    if (isInteractive(value)) value["action_id"] ??= randomId();
    if (Array.isArray(value["child_blocks"])) {
      for (const child of value["child_blocks"])
        if (isFields(child)) child["block_id"] ??= randomId();
    }
    for (const inner of Object.values(value)) if (typeof inner === "object") nameElements(inner);
  }
}

/** What a person would call it: a button's text, an input's label, a menu's placeholder or its dots. */
export function labelOf(element: Fields, block: Fields): string {
  if (element["type"] === "overflow") return "⋯";
  return wordsOf(element["text"]) || wordsOf(block["label"]) || wordsOf(element["placeholder"]);
}
