import {
  type Fields,
  fieldsOf,
  isFields,
  listOf,
  optionOf,
  optionsOf,
  textOf,
  wordsOf,
} from "../fields.ts";
import type { SeenOption, SeenState, SeenValue } from "../seen.ts";
import { elementsIn } from "./walk.ts";

const stateless = new Set([
  "button",
  "overflow",
  "feedback_buttons",
  "icon_button",
  "workflow_button",
]);

/** What the person looks at while a modal opens. `kind` in the words of a select's filter. */
export interface Current {
  id: string;
  kind: "public" | "private" | "im" | "mpim";
}

/** What an element holds before anybody touched it. */
export function initialValue(element: Fields, current?: Current): SeenValue {
  const type = textOf(element["type"]);
  const text = (key: string) => (typeof element[key] === "string" ? element[key] : null);
  const texts = (key: string) =>
    Array.isArray(element[key]) ? element[key].map((item) => textOf(item)) : [];
  const option = isFields(element["initial_option"]) ? optionOf(element["initial_option"]) : null;
  switch (type) {
    case "static_select":
    case "external_select":
    case "radio_buttons":
      return { type, selected_option: option };
    case "multi_static_select":
    case "multi_external_select":
    case "checkboxes":
      return { type, selected_options: listOf(element["initial_options"]).map(optionOf) };
    case "users_select":
      return { type, selected_user: text("initial_user") };
    case "multi_users_select":
      return { type, selected_users: texts("initial_users") };
    case "conversations_select":
      return {
        type,
        selected_conversation: currentIn(element, current) ?? text("initial_conversation"),
      };
    case "multi_conversations_select":
      return { type, selected_conversations: texts("initial_conversations") };
    case "channels_select":
      return { type, selected_channel: text("initial_channel") };
    case "multi_channels_select":
      return { type, selected_channels: texts("initial_channels") };
    case "datepicker":
      return { type, selected_date: text("initial_date") };
    case "timepicker":
      return { type, selected_time: text("initial_time") };
    case "datetimepicker":
      return {
        type,
        selected_date_time:
          typeof element["initial_date_time"] === "number" ? element["initial_date_time"] : null,
      };
    default:
      return { type, value: text("initial_value") };
  }
}

/** https://docs.slack.dev/reference/block-kit/block-elements/select-menu-element#conversations_select */
function currentIn(element: Fields, current: Current | undefined): string | undefined {
  if (element["default_to_current_conversation"] !== true || !current) return undefined;
  const kinds = fieldsOf(element["filter"])["include"];
  return !Array.isArray(kinds) || kinds.includes(current.kind) ? current.id : undefined;
}

/** The state of all inputs in the blocks. What a person entered stays where block id, action id and type are the same. */
export function stateOf(
  blocks: readonly Fields[],
  before: SeenState = {},
  current?: Current,
): SeenState {
  const state: SeenState = {};
  for (const { element, blockId, actionId } of elementsIn(blocks)) {
    if (stateless.has(textOf(element["type"]))) continue;
    const old = before[blockId]?.[actionId];
    const value = old && old.type === element["type"] ? old : initialValue(element, current);
    state[blockId] = { ...state[blockId], [actionId]: value };
  }
  return state;
}

/**
 * The element's new value after a person chose. Options are taken by label or value; `offered` adds those that the app
 * has just suggested. Throws when nothing like it can be chosen.
 */
export function chosenValue(
  element: Fields,
  choice: string | readonly string[] | number | null,
  offered: readonly SeenOption[],
): SeenValue {
  const type = textOf(element["type"]);
  const list = choice === null ? [] : (Array.isArray(choice) ? choice : [choice]).map(String);
  const one = list[0] ?? null;
  const options = [...optionsOf(element), ...offered];
  const pick = (wanted: string) => {
    const found =
      options.find((option) => option.value === wanted) ??
      options.find((option) => wordsOf(option.text) === wanted);
    if (found) return found;
    throw new Error(
      `There is no option ${wanted}; there are ${options.map((o) => wordsOf(o.text)).join(", ") || "none"}.`,
    );
  };
  switch (type) {
    case "static_select":
    case "external_select":
    case "radio_buttons":
    case "overflow":
      return { type, selected_option: one === null ? null : pick(one) };
    case "multi_static_select":
    case "multi_external_select":
    case "checkboxes":
      return { type, selected_options: list.map(pick) };
    case "users_select":
      return { type, selected_user: one };
    case "multi_users_select":
      return { type, selected_users: list };
    case "conversations_select":
      return { type, selected_conversation: one };
    case "multi_conversations_select":
      return { type, selected_conversations: list };
    case "channels_select":
      return { type, selected_channel: one };
    case "multi_channels_select":
      return { type, selected_channels: list };
    case "datepicker":
      return { type, selected_date: one };
    case "timepicker":
      return { type, selected_time: one };
    case "datetimepicker":
      return { type, selected_date_time: one === null ? null : Number(one) };
    default:
      return { type, value: one === "" ? null : one };
  }
}

export function isEmpty(value: SeenValue): boolean {
  const { type: _, ...held } = value;
  return Object.values(held).every(
    (item) => item === null || item === "" || (Array.isArray(item) && item.length === 0),
  );
}

/** What Slack's client says about an input before it sends anything; undefined when it is fine. */
export function clientComplaint(
  block: Fields,
  element: Fields,
  value: SeenValue,
): string | undefined {
  if (isEmpty(value))
    return block["optional"] === true ? undefined : "Please complete this required field.";
  const text = value.value ?? "";
  const number = (key: string) => (element[key] === undefined ? undefined : Number(element[key]));
  const [least, most] = [
    number("min_length"),
    number("max_length") ?? (value.value === undefined ? undefined : 3000),
  ];
  if (least !== undefined && text.length < least)
    return `Please enter at least ${least} characters.`;
  if (most !== undefined && text.length > most) return `Please enter at most ${most} characters.`;
  if (value.type === "number_input") return numberComplaint(element, text);
  if (value.type === "email_text_input" && !/^\S+@\S+\.\S+$/.test(text))
    return "Please enter a valid email address.";
  if (value.type === "url_text_input" && !URL.canParse(text)) return "Please enter a valid URL.";
  return undefined;
}

function numberComplaint(element: Fields, text: string): string | undefined {
  if (!/^-?\d+(?:\.\d+)?$/.test(text)) return "Please enter a valid number.";
  if (element["is_decimal_allowed"] !== true && text.includes("."))
    return "Please enter a whole number.";
  if (element["min_value"] !== undefined && Number(text) < Number(element["min_value"])) {
    return `Please enter a number of at least ${textOf(element["min_value"])}.`;
  }
  if (element["max_value"] !== undefined && Number(text) > Number(element["max_value"])) {
    return `Please enter a number of at most ${textOf(element["max_value"])}.`;
  }
  return undefined;
}
