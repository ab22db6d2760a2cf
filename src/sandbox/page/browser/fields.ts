import type { SeenOption } from "../../slack/seen.ts";

/** Block Kit as it comes: JSON nobody has promised anything about, looked at with care. */
export type Fields = Record<string, unknown>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

export function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

export function textOf(value: unknown, otherwise = ""): string {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : otherwise;
}

/** The words of a text object, or of a bare string. */
export function wordsOf(value: unknown): string {
  return typeof value === "string" ? value : textOf(fieldsOf(value)["text"]);
}

/** An option of a select, radio group or overflow menu. */
export function optionOf(value: unknown): SeenOption {
  const { text, value: id, description } = fieldsOf(value);
  return {
    text: { type: textOf(fieldsOf(text)["type"], "plain_text"), text: wordsOf(text) },
    value: textOf(id),
    ...(description === undefined
      ? {}
      : {
          description: {
            type: textOf(fieldsOf(description)["type"], "plain_text"),
            text: wordsOf(description),
          },
        }),
  };
}

export function optionsOf(value: unknown): SeenOption[] {
  return listOf(value).map(optionOf);
}
