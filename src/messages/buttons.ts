import type { Button, ConfirmationDialog, KnownBlock, Overflow } from "@slack/types";
import { limits } from "./limits.ts";
import { plain, shortened } from "./markdown.ts";
import { plainText } from "./text-objects.ts";

/** `value` contains IDs only, and authorizes nothing. */
export interface ButtonSpec {
  label: string;
  /** What it is about, unless the label says so: screen readers hear `Show train-7`, not nine times “Show”. */
  about?: string | undefined;
  action: string;
  value: string;
  style?: "primary" | "danger";
  confirm?: ConfirmSpec;
  /** The address that it opens in the browser (`linkButton`). Such a button runs nothing. */
  url?: string;
}

/** The family of the buttons that open an address. Slack reports their presses, which are only acknowledged. */
export const linkFamily = "link";

/** A button that opens an address. `kind` tells it from other links of its message. */
export const linkButton = (label: string, kind: string, url: string): ButtonSpec => ({
  label,
  action: `${linkFamily}:${kind}`,
  value: "",
  url,
});

/** Slack's confirm dialog. It protects from slips and proves nothing. */
interface ConfirmSpec {
  title: string;
  text: string;
  confirm: string;
  style?: "primary" | "danger";
}

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
 * In a menu, one action ID stands for all options, so the value of each option also says what it
 * does.
 */
const inMenu = ({ action, value }: ButtonSpec) =>
  JSON.stringify({ do: action, ...(JSON.parse(value) as object) });

/**
 * Whether these buttons can be shown as one menu. Slack limits the length of an option's value, and
 * a confirm dialog applies to a whole menu or not at all.
 */
export function fitsMenu(specs: readonly ButtonSpec[]): boolean {
  const fits = (spec: ButtonSpec) => !spec.confirm && inMenu(spec).length <= limits.menuValue;
  return specs.length <= limits.menu && specs.every(fits);
}

/**
 * The menu with three dots
 * (https://docs.slack.dev/reference/block-kit/block-elements/overflow-menu-element).
 */
export function menuOf(specs: readonly ButtonSpec[]): Overflow {
  // A menu takes no label for screen readers, so its options say what they are about.
  const options = specs.slice(0, limits.menu).map((spec) => ({
    text: plainText(spec.about ? heard(spec) : spec.label, limits.buttonText),
    value: inMenu(spec),
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

/**
 * A menu. Choosing an option arrives like a pressed button. At most 100 options are shown.
 * Undefined when there are none.
 */
export function menu(spec: {
  label: string;
  action: string;
  options: readonly (readonly [label: string, value: string])[];
}): KnownBlock | undefined {
  const options = spec.options
    .filter(([, value]) => value.length <= maxOptionValue)
    .slice(0, 100)
    .map(([label, value]) => ({ text: plainText(label, limits.buttonText), value }));
  if (options.length === 0) return undefined;
  const placeholder = plainText(spec.label);
  const select = { type: "static_select" as const, action_id: spec.action, placeholder, options };
  return { type: "actions", elements: [select] };
}
