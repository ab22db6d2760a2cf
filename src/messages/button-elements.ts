import type { Button, ConfirmationDialog, KnownBlock, Overflow } from "@slack/types";
import { type ButtonSpec, type ConfirmSpec, valueInMenu } from "./buttons.ts";
import { limits } from "./limits.ts";
import { plain, shortened } from "./markdown.ts";
import type { SaidPart } from "./parts.ts";
import { plainText } from "./text-objects.ts";

export function confirmation(spec: ConfirmSpec): ConfirmationDialog {
  return {
    title: plainText(spec.title, 100),
    text: plainText(spec.text, 300),
    confirm: plainText(spec.confirm, 30),
    deny: plainText("Cancel", 30),
    ...(spec.style ? { style: spec.style } : {}),
  };
}

/** The label with what the button is about: `Restart web-1…` for `Restart…`. */
function heard({ label, about = "" }: ButtonSpec): string {
  const [, verb = label, dots = ""] = /^(.*?)(…?)$/.exec(label) ?? [];
  const room = limits.buttonText - verb.length - dots.length - 1;
  return `${verb} ${shortened(plain(about, 1_000), room)}${dots}`;
}

export function button(spec: ButtonSpec): Button {
  return {
    type: "button",
    text: plainText(spec.label, limits.buttonText),
    ...(spec.about ? { accessibility_label: heard(spec) } : {}),
    action_id: spec.action,
    ...(spec.url === undefined
      ? { value: spec.value.slice(0, limits.buttonValue) }
      : { url: spec.url }),
    ...(spec.style ? { style: spec.style } : {}),
    ...(spec.confirm ? { confirm: confirmation(spec.confirm) } : {}),
  };
}

const menuAction = "menu";

/**
 * The menu with three dots
 * (https://docs.slack.dev/reference/block-kit/block-elements/overflow-menu-element).
 */
export function menuOf(specs: readonly ButtonSpec[]): Overflow {
  // A menu takes no label for screen readers, so its options say what they are about.
  const options = specs.slice(0, limits.menu).map((spec) => ({
    text: plainText(spec.about ? heard(spec) : spec.label, limits.buttonText),
    value: valueInMenu(spec),
  }));
  return { type: "overflow", action_id: menuAction, options };
}

export function buttons(specs: readonly ButtonSpec[]): KnownBlock[] {
  if (specs.length === 0) return [];
  const row = specs.slice(0, limits.actions);
  return [{ type: "actions", elements: row.map((spec, n) => button(toldApart(spec, row, n))) }];
}

/**
 * Slack refuses a message in which two buttons of a row have the same action. What follows the
 * command in `run:command:…` only tells its buttons apart.
 */
function toldApart(spec: ButtonSpec, row: readonly ButtonSpec[], n: number): ButtonSpec {
  const isFirst = row.findIndex(({ action }) => action === spec.action) === n;
  return isFirst || !spec.action.startsWith("run:")
    ? spec
    : { ...spec, action: `${spec.action}:${n}` };
}

/**
 * Slack refuses longer values
 * (https://docs.slack.dev/reference/block-kit/composition-objects/option-object).
 */
const maxOptionValue = 150;
const maxOptions = 100;

/** A menu as a row of its own. Empty when no option fits. */
export function menu({
  label,
  action,
  options,
}: Extract<SaidPart, { kind: "menu" }>): KnownBlock[] {
  const shown = options
    .filter(([, value]) => value.length <= maxOptionValue)
    .slice(0, maxOptions)
    .map(([text, value]) => ({ text: plainText(text, limits.buttonText), value }));
  if (shown.length === 0) return [];
  const placeholder = plainText(label);
  const select = { type: "static_select" as const, action_id: action, placeholder, options: shown };
  return [{ type: "actions", elements: [select] }];
}
