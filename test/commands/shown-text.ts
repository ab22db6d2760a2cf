import type { Message } from "../../src/messages/blocks.ts";
import { complaintsAbout, mostWeight, weightOf } from "../../sandbox/slack/blocks/check.ts";

/** What Slack would refuse about a message, in its own words; empty when it would take it. */
export function complaintsOf(message: Message): string[] {
  return [
    ...complaintsAbout(message.blocks, "message", "/blocks", () => false),
    ...(weightOf({ blocks: message.blocks }) > mostWeight ? ["msg_blocks_too_long"] : []),
    ...(message.text.length > 4000 ? ["the text is too long"] : []),
  ];
}

/** Everything a person reads in a message, top to bottom: a line each, cells of a table joined by ` | `. */
export function shownText({ blocks }: Message): string {
  return blocks
    .map((block) => {
      if (block.type === "data_table") {
        return block.rows.map((row) => row.map(texts).join(" | ")).join("\n");
      }
      if (block.type === "actions") return block.elements.map((one) => `[${texts(one)}]`).join(" ");
      return texts(block);
    })
    .filter((text) => text !== "")
    .join("\n");
}

/** The texts within a block, in order. */
function texts(value: unknown): string {
  if (Array.isArray(value)) return value.map(texts).filter(Boolean).join("\n");
  if (typeof value !== "object" || value === null) return "";
  if ("text" in value && typeof value.text === "string") return value.text;
  const within = new Map<string, unknown>(Object.entries(value));
  return ["text", "fields", "elements", "placeholder"]
    .map((key) => texts(within.get(key)))
    .filter(Boolean)
    .join("\n");
}

/** The buttons of a message, by their labels. */
export function buttonsOf({ blocks }: Message) {
  return blocks
    .flatMap((block) => (block.type === "actions" ? block.elements : []))
    .flatMap((element) => (element.type === "button" ? [element] : []))
    .map(({ text, action_id, value, confirm }) => ({
      label: text.text,
      action: action_id,
      value,
      ...(confirm ? { asks: `${confirm.title?.text} ${confirm.text?.text}` } : {}),
    }));
}
