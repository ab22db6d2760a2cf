import type {
  Button,
  ConfirmationDialog,
  DataTableBlock,
  KnownBlock,
  Overflow,
  PlainTextElement,
} from "@slack/types";
import { escape, inert, Markdown, md, news, plain, readable } from "./markdown.ts";

export * from "./markdown.ts";

/**
 * `text` is for notifications and screen readers; `blocks` are shown. The builders below cut visibly at Slack's limits
 * (https://docs.slack.dev/reference/block-kit/blocks), so that no message is refused for its size.
 */
export interface Message {
  text: string;
  blocks: Block[];
}

export type Block = KnownBlock | ChartBlock;

/** What Slack draws itself (https://docs.slack.dev/reference/block-kit/blocks/data-visualization-block); @slack/types 3.2.0 lacks it. */
export interface ChartBlock {
  type: "data_visualization";
  title: string;
  chart: {
    type: "line" | "bar";
    /** Each has a value for each category, in the same order. */
    series: { name: string; data: { label: string; value: number }[] }[];
    axis_config: { categories: string[]; x_label?: string; y_label?: string };
  };
}

export const limits = {
  blocks: 50,
  section: 3000,
  header: 150,
  context: 10,
  actions: 25,
  buttonText: 75,
  buttonValue: 2000,
  menu: 5,
  menuValue: 75,
  text: 4000,
} as const;

const cut = (text: string, most: number) =>
  text.length <= most ? text : `${text.slice(0, most - 1)}…`;

export function plainText(text: string, most = 150): PlainTextElement {
  return { type: "plain_text", text: plain(text, most) || " ", emoji: false };
}

/** `verbatim`: names and channels aren't auto-linked. */
function mrkdwn(text: Markdown, most: number) {
  return { type: "mrkdwn" as const, text: cut(text.value, most) || " ", verbatim: true };
}

/** With at most one button beside it, or a menu of several. */
export function section(text: Markdown, beside?: ButtonSpec | readonly ButtonSpec[]): KnownBlock {
  const said = { type: "section" as const, text: mrkdwn(text, limits.section) };
  if (!beside) return said;
  return { ...said, accessory: "label" in beside ? button(beside) : menuOf(beside) };
}

/** Label and value pairs in two columns; only the first 10 are shown. */
export function fields(
  pairs: readonly (readonly [label: string, value: Markdown] | undefined)[],
): KnownBlock {
  const shown = pairs.filter((pair) => pair !== undefined).slice(0, 10);
  return {
    type: "section",
    fields: shown.map(([label, value]) =>
      mrkdwn(new Markdown(`*${escape(label)}*\n${value.value}`), 2000),
    ),
  };
}

export function header(text: string): KnownBlock {
  return { type: "header", text: plainText(text, limits.header) };
}

export function context(...texts: readonly Markdown[]): KnownBlock {
  return {
    type: "context",
    elements: texts.slice(0, limits.context).map((text) => mrkdwn(text, limits.section)),
  };
}

export const divider: KnownBlock = { type: "divider" };

/** `value` contains IDs only: it authorizes nothing. */
export interface ButtonSpec {
  label: string;
  action: string;
  value: string;
  style?: "primary" | "danger";
  confirm?: ConfirmSpec;
}

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

export function button(spec: ButtonSpec): Button {
  return {
    type: "button",
    text: plainText(spec.label, limits.buttonText),
    action_id: spec.action,
    value: spec.value.slice(0, limits.buttonValue),
    ...(spec.style ? { style: spec.style } : {}),
    ...(spec.confirm ? { confirm: confirmation(spec.confirm) } : {}),
  };
}

const menuAction = "menu";

/** In a menu one action stands for all, so that the value of each says what it does. */
const inMenu = ({ action, value }: ButtonSpec) =>
  JSON.stringify({ do: action, ...(JSON.parse(value) as object) });

/** Whether these can stand in one menu: Slack allows their values few characters, and asks for all of a menu or for none. */
export function fitsMenu(specs: readonly ButtonSpec[]): boolean {
  const fits = (spec: ButtonSpec) => !spec.confirm && inMenu(spec).length <= limits.menuValue;
  return specs.length <= limits.menu && specs.every(fits);
}

/** Three dots (https://docs.slack.dev/reference/block-kit/block-elements/overflow-menu-element). */
function menuOf(specs: readonly ButtonSpec[]): Overflow {
  const options = specs
    .slice(0, limits.menu)
    .map((spec) => ({ text: plainText(spec.label, limits.buttonText), value: inMenu(spec) }));
  return { type: "overflow", action_id: menuAction, options };
}

export function buttons(specs: readonly ButtonSpec[]): KnownBlock[] {
  if (specs.length === 0) return [];
  return [{ type: "actions", elements: specs.slice(0, limits.actions).map(button) }];
}

/** Longer ones are refused by Slack (https://docs.slack.dev/reference/block-kit/composition-objects/option-object). */
const maxOptionValue = 150;

/** A menu; what is chosen arrives like a pressed button. At most 100 options are shown; without any there is no menu. */
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
  return {
    type: "actions",
    elements: [{ type: "static_select", action_id: spec.action, placeholder, options }],
  };
}

type Parts = readonly (Block | Block[] | undefined)[];

/** Joins blocks into a message, and counts those beyond the limit. A string as `text` is untrusted and made inert. */
export function message(text: string | Markdown, ...blocks: Parts): Message {
  const all = blocks.flat().filter((block) => block !== undefined);
  const over = all.length - limits.blocks + 1;
  if (over > 1)
    all.splice(limits.blocks - 1, over, context(new Markdown(`… ${over} more not shown`)));
  return {
    text: cut(text instanceof Markdown ? text.value : inert(text), limits.text),
    blocks: all,
  };
}

/** A paragraph, which is the notification too, and what stands below it. */
export function sentence(text: Markdown, ...below: Parts): Message {
  return message(readable(text), section(text), ...below);
}

/** A table below a sentence about it, which says so where only the first of all are shown. */
export function listing(head: Markdown, all: number, shown: number, ...below: Parts): Message {
  const said = new Markdown(`${head.value}. The first ${shown} are shown.`);
  return message(readable(head), section(shown < all ? said : head), ...below);
}

/** The same for a message that notifies people. */
export function notice(text: Markdown): Message {
  return message(news(text), section(text));
}

/** Slack turns the page itself: this many are read at a glance, on a phone too. */
const rowsPerPage = 10;
const maxRows = 100;
/** Slack's documentation has named 10,000 and 20,000. */
const maxCharacters = 9000;

/**
 * A table that Slack pages and sorts (https://docs.slack.dev/reference/block-kit/blocks/data-table-block), and how many rows
 * fit: long names leave room for fewer. Without rows there is no block.
 */
export function table(
  caption: string,
  columns: readonly string[],
  rows: readonly (readonly string[])[],
): { block: DataTableBlock | undefined; shown: number } {
  // Slack refuses empty cells
  const texts = rows
    .slice(0, maxRows)
    .map((row) => columns.map((_, index) => plain(row[index] ?? "", 120) || "–"));
  let room = maxCharacters;
  const end = texts.findIndex((row) => (room -= row.join("").length) < 0);
  const shown = end < 0 ? texts : texts.slice(0, end);
  if (shown.length === 0) return { block: undefined, shown: 0 };
  // Only a column of numbers alone is sorted by number
  const isNumeric = columns.map((_, index) =>
    shown.every((row) => /^\d{1,15}(\.\d+)?$/.test(row[index] ?? "")),
  );
  const block: DataTableBlock = {
    type: "data_table",
    caption: plain(caption) || "Table",
    page_size: rowsPerPage,
    rows: [
      columns.map((text) => ({ type: "raw_text", text: plain(text, 120) || "–" })),
      ...shown.map((row) =>
        row.map((text, index) =>
          isNumeric[index]
            ? { type: "raw_number" as const, value: Number(text), text }
            : { type: "raw_text" as const, text },
        ),
      ),
    ],
  };
  return { block, shown: shown.length };
}

/** What may stand before a sign with which a formula begins, and that sign: full-width ones count in some locales. */
const formula = /([\s"',;|]*)([=+\-@＝＋－＠]?)/gu;

/**
 * An apostrophe keeps names from being formulas (https://owasp.org/www-community/attacks/CSV_Injection): at the start of a
 * cell, and after whatever separates lists where the reader lives, because with a semicolon there our quotes end after the
 * first cell.
 */
function disarmed(text: string): string {
  return text.replaceAll(formula, (all, before: string, sign: string, offset: number) => {
    if (sign === "") return offset === 0 && /^[\t\r]/.test(before) ? `'${all}` : all;
    const from = (/^.*[,;|\t\r\n]/s.exec(before) ?? [""])[0].length;
    if (from === 0 && offset > 0) return all;
    const first = offset === 0 && from > 0 ? "'" : "";
    return `${first}${before.slice(0, from)}'${before.slice(from)}${sign}`;
  });
}

export function csv(rows: readonly (readonly string[])[]): string {
  const cell = (text: string) => `"${disarmed(text).replaceAll('"', '""')}"`;
  return `${rows.map((row) => row.map(cell).join(",")).join("\n")}\n`;
}

/** How a post is refused, in Slack's place, in a channel that another company reads too. */
export const sharedOutside = "shared_with_another_company";

/** What opens a channel that took no post, by how that was refused. */
export function howToOpen(error: string): Markdown {
  return error === sharedOutside
    ? md`It is shared with another company: \`sharedChannels\` in gatehouse.yml opens it.`
    : md`\`/invite @gatehouse\` changes that.`;
}
