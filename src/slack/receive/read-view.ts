import { at, listAt, payloadOf, textAt } from "../json.ts";

export function readView(view: unknown) {
  return {
    type: textAt(view, "type") === "home" ? ("home" as const) : ("modal" as const),
    callback: textAt(view, "callback_id"),
    hash: textAt(view, "hash"),
    privateMetadata: textAt(view, "private_metadata"),
    values: readValues(at(view, "state", "values")),
  };
}

export type InputValue = string | readonly string[] | undefined;

/**
 * Converts a view's `state.values` (block ID → action ID → element) to block ID → value, because
 * each block has one element.
 */
function readValues(values: unknown): Record<string, InputValue> {
  return Object.fromEntries(
    Object.entries(payloadOf(values)).map(([blockId, elements]) => [
      blockId,
      elementValue(Object.values(payloadOf(elements))[0]),
    ]),
  );
}

/**
 * The value of an element, of the kinds that Gatehouse shows: a text, the value of an option, or a
 * list of them.
 */
export function elementValue(element: unknown): InputValue {
  if (Array.isArray(at(element, "selected_options")))
    return listAt(element, "selected_options").map((option) => textAt(option, "value"));
  return (
    textAt(element, "selected_option", "value") ||
    textAt(element, "value") ||
    textAt(element, "selected_conversation") ||
    undefined
  );
}
