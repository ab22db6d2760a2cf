import type { InputBlock, Option } from "@slack/types";
import { limits } from "./limits.ts";
import type { Entry, InputPart } from "./inputs.ts";
import { plainText } from "./text-objects.ts";

/** An input of a modal. */
export function inputBlock(input: InputPart): InputBlock {
  const { id, label, hint, isOptional, isWatched, entry, action = id } = input;
  return {
    type: "input",
    block_id: id,
    label: plainText(label),
    element: elementOf(entry, action),
    ...(isOptional === undefined ? {} : { optional: isOptional }),
    ...(isWatched === undefined ? {} : { dispatch_action: isWatched }),
    ...(hint ? { hint: plainText(hint) } : {}),
  };
}

function elementOf(entry: Entry, action: string): InputBlock["element"] {
  switch (entry.kind) {
    case "text":
      return {
        type: "plain_text_input",
        action_id: action,
        ...(entry.isLong ? { multiline: true } : {}),
        ...(entry.least === undefined ? {} : { min_length: entry.least }),
        max_length: entry.most,
        ...(entry.placeholder ? { placeholder: plainText(entry.placeholder) } : {}),
        ...(entry.initial === undefined
          ? {}
          : { initial_value: entry.initial.slice(0, entry.most) }),
      };
    case "choice": {
      const options = entry.options.map((text) => optionOf({ label: text, value: text }));
      const chosen = options.find(({ value }) => value === entry.chosen);
      return {
        type: "static_select",
        action_id: action,
        options,
        ...(chosen ? { initial_option: chosen } : {}),
      };
    }
    case "search":
      return {
        type: "external_select",
        action_id: action,
        min_query_length: 0,
        placeholder: plainText(entry.placeholder),
        ...(entry.chosen
          ? {
              initial_option: optionOf({
                ...entry.chosen,
                value: entry.chosen.value.slice(0, limits.suggestedValue),
              }),
            }
          : {}),
      };
    case "tick": {
      const option = optionOf({ label: entry.label, value: "true" });
      return {
        type: "checkboxes",
        action_id: action,
        options: [option],
        ...(entry.isTicked ? { initial_options: [option] } : {}),
      };
    }
    case "channel":
      return {
        type: "conversations_select",
        action_id: action,
        default_to_current_conversation: true,
        filter: { include: ["public", "private"], exclude_bot_users: true },
      };
    default:
      return entry satisfies never;
  }
}

/** An option of an input, or one that is suggested while a person types. */
export function optionOf({
  label,
  value,
  description,
}: {
  label: string;
  value: string;
  description?: string | undefined;
}) {
  return {
    text: plainText(label, limits.option),
    value,
    ...(description === undefined ? {} : { description: plainText(description, limits.option) }),
  } satisfies Option;
}
