import { at, listAt, payloadOf, textAt, textsAt } from "./payload.ts";

export type InputValue = string | readonly string[] | undefined;

/** A view's `state.values` (block id → action id → element) as block id → value. A block of inputs holds one element. */
export function readValues(values: unknown): Record<string, InputValue> {
  return Object.fromEntries(
    Object.entries(payloadOf(values)).map(([blockId, elements]) => [
      blockId,
      valueOf(Object.values(payloadOf(elements))[0]),
    ]),
  );
}

const single = [
  "value",
  "selected_user",
  "selected_conversation",
  "selected_channel",
  "selected_date",
  "selected_time",
] as const;

const several = ["selected_users", "selected_conversations", "selected_channels"] as const;

/** What was entered or chosen in one element: a text, the value of an option, or a list of them. */
export function valueOf(element: unknown): InputValue {
  const option = textAt(element, "selected_option", "value");
  if (option !== "") return option;
  for (const name of single) {
    const value = textAt(element, name);
    if (value !== "") return value;
  }
  const time = at(element, "selected_date_time");
  if (typeof time === "number") return String(time);
  if (Array.isArray(at(element, "selected_options"))) {
    return listAt(element, "selected_options").map((one) => textAt(one, "value"));
  }
  for (const name of several) if (Array.isArray(at(element, name))) return textsAt(element, name);
  return undefined;
}
