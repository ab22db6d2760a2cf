import { type Fields, fieldsOf, listOf, optionOf, textOf, wordsOf } from "../../../slack/fields.ts";
import type { Seen, SeenChannel, SeenOption, SeenValue } from "../../../slack/seen.ts";
import { type ComboOption, createCombobox } from "./combobox.ts";
import { choose, type Control, focusKeyOf, suggest, valueOf } from "./surface.ts";

/** Every kind of select menu, for one option or several. */
export function drawSelect(control: Control): HTMLElement {
  const { element, surface } = control;
  const type = textOf(element["type"]);
  const several = type.startsWith("multi_");
  const source = type.replace(/^multi_/, "").replace(/_select$/, "");
  const most = Number(element["max_selected_items"] ?? Infinity);
  return createCombobox({
    several,
    focusKey: focusKeyOf(control),
    placeholder: wordsOf(element["placeholder"]) || (several ? "Choose some" : "Choose one"),
    chosen: chosenIn(control, source),
    full: (count) => several && count >= most,
    ...(source === "external"
      ? {
          leastTyped: Number(element["min_query_length"] ?? 3),
          load: (typed) => suggestions(control, typed),
        }
      : { offered: offeredBy(element, source, surface.seen) }),
    choose: (values) => choose(control, several ? values : (values[0] ?? null)),
  });
}

const asCombo = (option: SeenOption, group?: string): ComboOption => ({
  value: option.value,
  label: option.text.text,
  ...(option.description ? { hint: option.description.text } : {}),
  ...(group === undefined ? {} : { group }),
});

async function suggestions(control: Control, typed: string): Promise<ComboOption[] | undefined> {
  const options = await suggest(control, typed);
  return options?.map((option) => asCombo(option));
}

/** What Slack calls the kinds of conversations that the sandbox calls otherwise. */
const nameOfKind: Partial<Record<SeenChannel["kind"], string>> = { direct: "im", group: "mpim" };

function offeredBy(element: Fields, source: string, seen: Seen): ComboOption[] {
  if (source === "users")
    return seen.people.map((person) => ({
      value: person.id,
      label: person.realName,
      hint: `@${person.name}`,
    }));
  if (source === "channels" || source === "conversations") {
    const kinds = fieldsOf(element["filter"])["include"];
    const wanted = source === "channels" ? ["public"] : Array.isArray(kinds) ? kinds : undefined;
    return seen.channels
      .filter(({ kind }) => wanted?.includes(nameOfKind[kind] ?? kind) ?? true)
      .map(({ id, kind, name }) => ({
        value: id,
        label: `${kind === "direct" ? "@" : "#"}${name}`,
      }));
  }
  return [
    ...listOf(element["options"]).map((option) => asCombo(optionOf(option))),
    ...listOf(element["option_groups"]).flatMap((group) =>
      listOf(group["options"]).map((option) => asCombo(optionOf(option), wordsOf(group["label"]))),
    ),
  ];
}

function chosenIn(control: Control, source: string): ComboOption[] {
  const { element, surface } = control;
  const value = valueOf(control);
  const ids = value ? idsIn(value) : initialIds(element, source);
  if (ids.length > 0) {
    const all = offeredBy(element, source, surface.seen);
    return ids.map((id) => all.find((option) => option.value === id) ?? { value: id, label: id });
  }
  if (value)
    return [
      ...(value.selected_options ?? []),
      ...(value.selected_option ? [value.selected_option] : []),
    ].map((option) => asCombo(option));
  const one = element["initial_option"];
  return [
    ...listOf(element["initial_options"]).map(optionOf),
    ...(one === undefined ? [] : [optionOf(one)]),
  ].map((option) => asCombo(option));
}

function idsIn(value: SeenValue): string[] {
  const one = value.selected_user ?? value.selected_channel ?? value.selected_conversation;
  return [
    ...(typeof one === "string" ? [one] : []),
    ...(value.selected_users ?? value.selected_channels ?? value.selected_conversations ?? []),
  ];
}

function initialIds(element: Fields, source: string): string[] {
  const name = source.replace(/s$/, "");
  const { [`initial_${name}`]: one, [`initial_${name}s`]: many } = fieldsOf(element);
  return [
    ...(typeof one === "string" ? [one] : []),
    ...(Array.isArray(many) ? many.map((id) => textOf(id)) : []),
  ];
}
