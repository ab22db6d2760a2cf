import { fieldsOf, textOf, wordsOf } from "../../../slack/fields.ts";
import { el } from "../dom/dom.ts";
import { blockIdOf, choose, type Control, focusKeyOf, valueOf } from "./surface.ts";

const types: Record<string, string> = {
  email_text_input: "email",
  url_text_input: "url",
};

/** One line or several. Numbers are typed as text: what is wrong with them is for the client and the app to say. */
export function drawTextInput(control: Control): HTMLElement {
  const { element } = control;
  const type = textOf(element["type"]);
  if (type === "file_input")
    return el("span", { class: "unknown" }, "(Uploading files isn't possible here)");
  const multiline = element["multiline"] === true || type === "rich_text_input";
  const shared = {
    class: "text-input",
    placeholder: wordsOf(element["placeholder"]) || undefined,
    "data-control": true,
    "data-focus": focusKeyOf(control),
    autofocus: element["focus_on_load"] === true,
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => keepDraft(control.surface.id, blockIdOf(control), input.value),
    onchange: () => settled(control, input.value),
  };
  const input: HTMLInputElement | HTMLTextAreaElement = multiline
    ? el("textarea", { ...shared, rows: 3 })
    : el("input", {
        ...shared,
        type: types[type] ?? "text",
        inputmode: type === "number_input" ? "decimal" : undefined,
      });
  const field: HTMLElement = input;
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !multiline && dispatchesOn(control, "on_enter_pressed")) {
      event.preventDefault();
      void choose(control, input.value);
    }
  });
  input.value = shownIn(control);
  input.defaultValue = input.value;
  return input;
}

/** Left with new words in it. In a modal they wait for the submit; elsewhere Slack remembers them with the message. */
function settled(control: Control, value: string): void {
  const onCharacters = dispatchesOn(control, "on_character_entered");
  if (control.surface.where !== "modal" || onCharacters) void choose(control, value);
}

function dispatchesOn({ block, element }: Control, trigger: string): boolean {
  if (block["dispatch_action"] !== true) return false;
  const config = fieldsOf(element["dispatch_action_config"])["trigger_actions_on"];
  return Array.isArray(config) ? config.includes(trigger) : trigger === "on_enter_pressed";
}

function shownIn(control: Control): string {
  const draft = draftOf(control.surface.id, blockIdOf(control));
  if (draft !== undefined) return draft;
  const state = valueOf(control);
  return state ? (state.value ?? "") : textOf(control.element["initial_value"]);
}

/**
 * What has been typed into text inputs and not been submitted: by the id of the view, then by block id. A view that the
 * app updates keeps what was typed as long as its input keeps its block id, as in Slack.
 */
const drafts = new Map<string, Map<string, string>>();

export function keepDraft(viewId: string, blockId: string, text: string): void {
  const kept = drafts.get(viewId) ?? new Map<string, string>();
  drafts.set(viewId, kept.set(blockId, text));
}

export function draftOf(viewId: string, blockId: string): string | undefined {
  return drafts.get(viewId)?.get(blockId);
}

export function forgetDrafts(viewId: string): void {
  drafts.delete(viewId);
}
