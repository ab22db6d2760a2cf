import type { SeenOption } from "./seen.ts";

/** JSON as it comes from outside: nothing about it is known until it is looked at. */
export type Fields = Record<string, unknown>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value as an object, empty when it is anything else. */
export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

/** The value as a list of objects; what isn't one is left out. */
export function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

export function textOf(value: unknown, otherwise = ""): string {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : otherwise;
}

/** The value as a list of texts; anything that isn't a list is none. */
export function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map((text) => textOf(text)) : [];
}

/** The words of a text object, or of a bare string. */
export function wordsOf(value: unknown): string {
  return typeof value === "string" ? value : textOf(fieldsOf(value)["text"]);
}

/** A deep copy, so that nobody outside can change what is stored. */
export function copyOf<T>(value: T): T {
  return structuredClone(value);
}

function words(text: Fields): SeenOption["text"] {
  return {
    type: textOf(text["type"], "plain_text"),
    text: wordsOf(text),
    ...(typeof text["emoji"] === "boolean" ? { emoji: text["emoji"] } : {}),
  };
}

/** An option as the state and payloads carry it. */
export function optionOf(value: unknown): SeenOption {
  const { text, value: id, description } = fieldsOf(value);
  return {
    text: words(fieldsOf(text)),
    value: textOf(id),
    ...(description === undefined ? {} : { description: words(fieldsOf(description)) }),
  };
}

/** Every option of an element or of an answer to a suggestion: its `options`, or those of its `option_groups`. */
export function optionsOf(value: Fields): SeenOption[] {
  const grouped = listOf(value["option_groups"]).flatMap((group) => listOf(group["options"]));
  return [...listOf(value["options"]), ...grouped].map(optionOf);
}
