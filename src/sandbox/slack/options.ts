import { type Fields, fieldsOf, listOf, textOf, wordsOf } from "./fields.ts";
import type { SeenOption } from "./seen.ts";

function words(text: Fields): SeenOption["text"] {
  return {
    type: textOf(text["type"], "plain_text"),
    text: wordsOf(text),
    ...(typeof text["emoji"] === "boolean" ? { emoji: text["emoji"] } : {}),
  };
}

/** An option as the state and payloads carry it. */
export function optionOf(value: Fields): SeenOption {
  const description = value["description"];
  return {
    text: words(fieldsOf(value["text"])),
    value: textOf(value["value"]),
    ...(description === undefined ? {} : { description: words(fieldsOf(description)) }),
  };
}

/** Every option of an element or of an answer to a suggestion: its `options`, or those of its `option_groups`. */
export function optionsOf(value: Fields): SeenOption[] {
  const grouped = listOf(value["option_groups"]).flatMap((group) => listOf(group["options"]));
  return [...listOf(value["options"]), ...grouped].map(optionOf);
}
