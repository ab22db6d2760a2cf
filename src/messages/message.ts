import type {
  Button,
  ConfirmationDialog,
  DataTableBlock,
  KnownBlock,
  Overflow,
  PlainTextElement,
} from "@slack/types";
import { unseen } from "../text/terminal.ts";
import { clockWords, utcWords, clearForMs } from "../text/time-words.ts";

/**
 * `text` is for notifications and screen readers; `blocks` are shown. The builders below cut
 * visibly at Slack's limits (https://docs.slack.dev/reference/block-kit/blocks), so that no message
 * is refused for its size.
 */
export interface Message {
  text: string;
  blocks: Block[];
}

export type Block = KnownBlock | ChartBlock;

/**
 * A chart that Slack draws
 * (https://docs.slack.dev/reference/block-kit/blocks/data-visualization-block). @slack/types 3.2.0
 * lacks its type.
 */
export interface ChartBlock {
  type: "data_visualization";
  title: string;
  chart: {
    type: "line" | "bar";
    /** Each series has a value for each category, in the same order. */
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
  weight: 12_000,
} as const;

/** The weight that each block adds to that of its characters. */
const blockWeight = 125;
/**
 * The weight that lists leave free for later additions to their message, such as a note or a button
 * that shares it.
 */
const addedWeight = 800;

/**
 * The weight of blocks by the limit that Slack applies. Slack refuses a message
 * (`msg_blocks_too_long`) above about 12,000 characters in all blocks together, plus about 125 for
 * each block. This is documented nowhere; people measured it
 * (https://github.com/slackapi/bolt-js/issues/2509 and 2867). It isn't known which characters
 * count, so all do here, including values and IDs.
 */
export function weightOf(blocks: readonly object[]): number {
  const characters = (value: unknown, key = ""): number => {
    if (typeof value === "string") return key === "type" ? 0 : value.length;
    if (typeof value !== "object" || value === null) return 0;
    return Object.entries(value).reduce((sum, [field, one]) => sum + characters(one, field), 0);
  };
  return blocks.length * blockWeight + characters(blocks);
}

/**
 * How many characters one more block may have next to these parts, with space left for later
 * additions.
 */
export const roomBeside = (...parts: Parts): number =>
  limits.weight - addedWeight - blockWeight - weightOf(blocksIn(parts));

const cut = (text: string, most: number) =>
  text.length <= most ? text : `${text.slice(0, most - 1)}…`;

export function plainText(text: string, most = 150): PlainTextElement {
  return { type: "plain_text", text: plain(text, most) || " ", emoji: false };
}

/** With `verbatim`, Slack doesn't turn names and channels into links. */
function mrkdwn(text: Markdown, most: number) {
  return { type: "mrkdwn" as const, text: cut(text.value, most) || " ", verbatim: true };
}

/** A section with one button next to its text, or a menu of several. */
export function section(text: Markdown, beside?: ButtonSpec | readonly ButtonSpec[]): KnownBlock {
  const said = { type: "section" as const, text: mrkdwn(text, limits.section) };
  if (!beside) return said;
  return { ...said, accessory: "label" in beside ? button(beside) : menuOf(beside) };
}

/** One row per line, in as few sections as Slack's limit allows. */
export function sections(rows: readonly Markdown[]): KnownBlock[] {
  const texts: Markdown[] = [];
  for (const row of rows) {
    const longer = lines(texts.at(-1), row);
    if (longer.value.length <= limits.section) texts.splice(-1, 1, longer);
    else texts.push(row);
  }
  return texts.map((text) => section(text));
}

/** Pairs of label and value in two columns. Only the first 10 are shown. */
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
function menuOf(specs: readonly ButtonSpec[]): Overflow {
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

/**
 * The message with `words` in place of its button `<action> <value>`, and without the sentence
 * `asks` that asks people to press it, because it was pressed. Undefined when the message doesn't
 * have that button.
 */
export function answered(
  { text, blocks }: Message,
  named: string,
  words: Markdown,
  asks?: string,
): Message | undefined {
  const isIt = (one: object) =>
    "action_id" in one && "value" in one && [one.action_id, one.value].join(" ") === named;
  const withoutAsk = (said: string) =>
    new Markdown(asks === undefined ? said : said.replace(asks, "").replace(/[ ·]+$/, ""));
  const hasIt = (block: Block | undefined) =>
    block?.type === "actions" && block.elements.some(isIt);
  const shown = blocks.map((block, n) => {
    if (block.type === "section" && block.accessory && isIt(block.accessory))
      return section(lines(withoutAsk(block.text?.text ?? ""), words));
    if (block.type === "context" && hasIt(blocks[n + 1]))
      return context(
        ...block.elements.map((one) => withoutAsk(one.type === "mrkdwn" ? one.text : "")),
      );
    if (block.type !== "actions" || !block.elements.some(isIt)) return block;
    const elements = block.elements.filter((one) => !isIt(one));
    return [section(words), ...(elements.length > 0 ? [{ ...block, elements }] : [])];
  });
  if (shown.every((one, index) => one === blocks[index])) return undefined;
  return message(new Markdown(text), ...shown);
}

/** The buttons of a message that run one of these actions, as `answered` names them. */
export function buttonsOf(
  { blocks }: Pick<Message, "blocks">,
  actions: readonly string[],
): string[] {
  const elements = blocks.flatMap((block): readonly object[] => {
    if (block.type === "actions") return block.elements;
    return block.type === "section" && block.accessory ? [block.accessory] : [];
  });
  return elements.flatMap((one) =>
    "action_id" in one && "value" in one && actions.includes(String(one.action_id))
      ? [[one.action_id, one.value].join(" ")]
      : [],
  );
}

/**
 * A list that is cut to the space that the rest of its message leaves. `blocksOf(n)` shows the
 * first `n` of `count` items and says how many more there are.
 */
export class List {
  readonly count: number;
  readonly blocksOf: (shown: number) => readonly Block[];
  constructor(count: number, blocksOf: (shown: number) => Parts) {
    this.count = count;
    this.blocksOf = (shown) => blocksIn(blocksOf(shown));
  }
}

export type Part = Block | readonly Block[] | List | undefined;
type Parts = readonly Part[];

/**
 * A list of rows of one or more blocks, the most important first. `rest` renders a note about the
 * rows that aren't shown, plus `beyond` others.
 */
export function list(
  rows: readonly (Block | readonly Block[])[],
  {
    beyond = 0,
    rest = moreWords,
  }: { beyond?: number; rest?: (left: number, shown: number) => Block | Markdown | undefined } = {},
): List {
  return new List(rows.length, (shown) => {
    const left = rows.length - shown + beyond;
    const more = left > 0 ? rest(left, shown) : undefined;
    return [...rows.slice(0, shown).flat(), more instanceof Markdown ? context(more) : more];
  });
}

const moreWords = (left: number) => new Markdown(`… ${left.toLocaleString("en-US")} more`);

/**
 * A list of lines of text, in as few sections as Slack's limit allows. `rest` renders the note
 * about the others.
 */
export function lineList(
  rows: readonly Markdown[],
  { beyond = 0, rest = moreWords }: { beyond?: number; rest?: (left: number) => Markdown } = {},
): List {
  return new List(rows.length, (shown) => {
    const left = rows.length - shown + beyond;
    return [sections(rows.slice(0, shown)), left > 0 ? context(rest(left)) : undefined];
  });
}

/**
 * The blocks of all parts. A list is as short as possible unless `shown` says how many of its items
 * are shown.
 */
const blocksIn = (parts: Parts, shown: ReadonlyMap<List, number> = new Map()): Block[] =>
  parts
    .flatMap((part) => (part instanceof List ? part.blocksOf(shown.get(part) ?? 0) : part))
    .filter((block) => block !== undefined);

const isWithin = (blocks: readonly Block[], weight: number) =>
  blocks.length <= limits.blocks && weightOf(blocks) <= weight;

/** The most items, fewer than `count`, that fit where all fewer do; 0 if not even one does. */
function mostThat(fits: (many: number) => boolean, count: number): number {
  let most = 0;
  let tooMany = count;
  while (tooMany - most > 1) {
    const many = Math.floor((most + tooMany) / 2);
    if (fits(many)) most = many;
    else tooMany = many;
  }
  return most;
}

/** What a message says, before it is made into blocks. */
interface Card {
  /** A line above the title, for what must be read first. */
  above?: Markdown | undefined;
  /** A title as large as a page's, in place of a sentence. */
  heading?: string;
  /** How it stands, at a glance: `✅`. */
  sign?: string;
  /** One sentence: the first line, and what notifications and screen readers begin with. */
  title?: Markdown | undefined;
  /** What notifications say, where the title has mentions for others, or leans on what is above it. */
  push?: Markdown | undefined;
  /** Further lines of the title's paragraph. */
  lines?: Rows;
  /** What comes below: paragraphs, rows, lists, tables, charts. */
  body?: Parts;
  /** Small print, a paragraph each. */
  meta?: Rows;
  /** Buttons, in one row or in several. */
  ways?: readonly ButtonSpec[] | readonly (readonly ButtonSpec[])[];
}

/** Makes a message of what it says. */
export function card({ above, heading, sign, title, push, ...more }: Card): Message {
  const { lines: below = [], body = [], meta = [], ways = [] } = more;
  const first = title && (sign === undefined ? title : md`${sign} ${title}`);
  const paragraph = lines(first, ...below);
  const rows = ways.every((way) => "label" in way) ? [ways] : ways;
  return message(
    readable(push ?? first ?? md`${heading ?? ""}`),
    above && above.value !== "" ? section(above) : undefined,
    heading === undefined ? undefined : header(heading),
    paragraph.value === "" ? undefined : section(paragraph),
    ...body,
    ...meta.flatMap((text) => (text && text.value !== "" ? [context(text)] : [])),
    ...rows.map((row) => buttons(row)),
  );
}

/** The message with more parts below it. */
export const withParts = ({ text, blocks }: Message, ...below: Parts): Message =>
  message(new Markdown(text), blocks, ...below);

/** The message as it is posted: its text is what a locked phone shows. */
export function asPost(posted: Message): Message {
  const hasBlocks = posted.blocks.length > 0;
  return hasBlocks ? { ...posted, text: news(new Markdown(posted.text)).value } : posted;
}

/**
 * Joins blocks into a message that Slack accepts. Lists are cut to the space that is left; an
 * earlier list gets its space before a later one.
 */
function message(text: Markdown, ...parts: Parts): Message {
  const shown = new Map<List, number>();
  for (const part of parts) {
    if (!(part instanceof List)) continue;
    const fits = (many: number) =>
      isWithin(blocksIn(parts, new Map([...shown, [part, many]])), limits.weight - addedWeight);
    shown.set(part, fits(part.count) ? part.count : mostThat(fits, part.count));
  }
  return {
    text: cut(text.value, limits.text),
    blocks: fitting(blocksIn(parts, shown)),
  };
}

/**
 * As many of the blocks as Slack accepts in one message, with the number of the omitted ones in
 * their place. Buttons at the end are kept. This is for blocks that no list has cut, so that no
 * message is refused for its size, whoever built it.
 */
export function fitting<B extends object>(blocks: readonly B[]): (B | Block)[] {
  // Every block of Slack has a type; B only says less of it.
  const all = [...blocks] as unknown as Block[];
  if (isWithin(all, limits.weight)) return [...blocks];
  const end = all.slice(all.at(-1)?.type === "actions" ? -1 : all.length);
  const body = all.slice(0, all.length - end.length);
  for (let shown = body.length - 1; shown > 0; shown -= 1) {
    const more = context(new Markdown(`… ${body.length - shown} more not shown`));
    const some = [...body.slice(0, shown), more, ...end];
    if (isWithin(some, limits.weight)) return some;
  }
  return [context(new Markdown(`… ${all.length} blocks not shown`))];
}

/** A paragraph with more blocks below it. */
export const sentence = (title: Markdown, ...body: Parts): Message => card({ title, body });

/** A sentence with a table below it. The sentence says so when only the first rows are shown. */
export function listing(head: Markdown, all: number, shown: number, ...below: Parts): Message {
  const part = new Markdown(`${head.value}. The first ${shown} are shown.`);
  return card({ title: shown < all ? part : head, push: head, body: below });
}

/** At least this many characters are kept for a table below rows. */
export const leastForTable = 3000;

/**
 * The first items as rows, as many as fit, and the others in a table below them. `tableFrom` builds
 * that table from an index on, with at most `room` characters. The head says so when not all items
 * are shown.
 */
export function rowsOverTable(
  head: Markdown,
  all: number,
  rows: readonly (readonly Block[])[],
  tableFrom: (from: number, room: number) => ReturnType<typeof table>,
): Message {
  const body = new List(rows.length, (many) => {
    const shown = rows.slice(0, many).flat();
    const room = Math.max(leastForTable, roomBeside(section(head), shown));
    const rest = many < all ? tableFrom(many, room) : { block: undefined, shown: 0 };
    const said = many + rest.shown;
    const cutHead = new Markdown(`${head.value.replace(/\.$/, "")}. The first ${said} are shown.`);
    return [section(said < all ? cutHead : head), shown, rest.block];
  });
  return card({ push: head, body: [body] });
}

/**
 * Slack turns the table's pages itself. This many rows can be read at a glance, on a phone, too.
 */
const rowsPerPage = 10;
const maxRows = 100;
/** Slack's documentation has named both 10,000 and 20,000. */
const maxCharacters = 9000;
export const mostInCell = 120;

/** A longer name in the first column would push the others out of sight (characters, with its sign). */
const mostInFirstCell = 34;

/** The names of rows, shortened in the middle unless two would then read alike. */
function shortNames(names: readonly string[]): string[] {
  const short = names.map((one) => shortened(one, mostInFirstCell));
  const alike = Map.groupBy(short, (one) => one);
  return short.map((one, n) =>
    alike.get(one)?.length === 1 ? one : plain(names[n] ?? one, mostInCell),
  );
}

/**
 * A table that Slack pages and sorts
 * (https://docs.slack.dev/reference/block-kit/blocks/data-table-block), and how many rows fit,
 * because long names leave space for fewer. Without rows there is no block.
 */
export function table(
  caption: string,
  columns: readonly string[],
  rows: readonly (readonly string[])[],
  /** The number of characters that the rest of the message leaves. */
  most = maxCharacters,
): { block: DataTableBlock | undefined; shown: number } {
  const some = rows.slice(0, maxRows);
  const names = shortNames(some.map(([first = ""]) => plain(first, 1_000)));
  // Slack refuses empty cells.
  const texts = some.map((row, n) =>
    columns.map(
      (_, index) => (index === 0 ? names[n] : plain(row[index] ?? "", mostInCell)) || "–",
    ),
  );
  let room = Math.min(most, maxCharacters) - [caption, ...columns].join("").length;
  const end = texts.findIndex((row) => (room -= row.join("").length) < 0);
  const shown = end < 0 ? texts : texts.slice(0, end);
  if (shown.length === 0) return { block: undefined, shown: 0 };
  // Slack sorts a column by number only if all its cells are numbers.
  const isNumeric = columns.map((_, index) =>
    shown.every((row) => /^\d{1,15}(\.\d+)?$/.test(row[index] ?? "")),
  );
  const block: DataTableBlock = {
    type: "data_table",
    caption: plain(caption) || "Table",
    page_size: rowsPerPage,
    rows: [
      columns.map((text) => ({ type: "raw_text", text: plain(text, mostInCell) || "–" })),
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

/**
 * A sign with which a formula begins, and what may stand before it. Full-width signs count in some
 * locales.
 */
const formula = /([\s"',;|]*)([=+\-@＝＋－＠]?)/gu;

/**
 * Puts an apostrophe before text that a spreadsheet would run as a formula
 * (https://owasp.org/www-community/attacks/CSV_Injection). It is needed at the start of a cell, and
 * after every character that separates values in some locale: where that is a semicolon, our quotes
 * end after the first cell.
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

/**
 * The error that Gatehouse uses, in Slack's place, for a post to a channel that another company
 * reads, too.
 */
export const sharedOutside = "shared_with_another_company";

/** The error for a group direct message whose members the app isn't allowed to see. */
export const unseenGroup = "group_message_unseen";

/**
 * How people can make a channel accept posts, by the error with which it refused one. Undefined for
 * an error that isn't about the channel.
 */
export function howToOpen(error: string): Markdown | undefined {
  if (error === sharedOutside)
    return md`It is shared with another company: \`sharedChannels\` in gatehouse.yml opens it.`;
  if (error === unseenGroup)
    return md`The app lacks the scope \`mpim:read\`, so Gatehouse can't see whether another company reads it. Whoever runs Gatehouse can install the app again from manifest.yml.`;
  if (error === "is_archived") return md`It is archived.`;
  if (error === "not_in_channel" || error === "channel_not_found")
    return md`\`/invite @gatehouse\` changes that.`;
  if (error === "no_permission" || error.startsWith("restricted_action"))
    return md`The settings of the workspace or of the channel decide who posts there.`;
  return undefined;
}

// Text from the compute service or from people must not mention, link, or style. Slack asks only for
// &, <, and > to be escaped (https://docs.slack.dev/messaging/formatting-message-text), which leaves
// backticks, *_~, and invisible characters to the functions below.

/** One line without invisible characters, cut at `most` code points with an ellipsis. */
export function plain(value: unknown, most = 150): string {
  const text = String(value).replaceAll(/\s+/g, " ").replaceAll(unseen, "").trim();
  // It has no more code points than code units.
  if (text.length <= most) return text;
  const points = Array.from(text);
  return points.length <= most ? text : `${points.slice(0, most - 1).join("")}…`;
}

/**
 * Text that is cut in the middle, because names of one kind begin alike and differ at the end:
 * `payments-eu-w…worker-17`.
 */
export function shortened(text: string, most: number): string {
  const points = Array.from(text);
  if (points.length <= most) return text;
  const end = Math.floor((most - 1) / 2);
  return `${points.slice(0, most - 1 - end).join("")}…${points.slice(points.length - end).join("")}`;
}

const lookalikes: Record<string, string> = { "`": "ˋ", "*": "∗", _: "＿", "~": "∼" };

/** Untrusted text inside mrkdwn. It is shown as it reads, never as markup. */
export function escape(value: unknown, most = 150): string {
  return (
    plain(value, most)
      .replaceAll("&", "&amp;")
      .replaceAll("<", "&lt;")
      .replaceAll(">", "&gt;")
      .replaceAll(/[`*~]/g, (c) => lookalikes[c] ?? c)
      .replaceAll(/(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, "＿")
      // A word joiner, which is invisible, keeps `@here` and `:emoji:` inert.
      .replaceAll(/@(?=\w)/g, "@\u2060")
      .replaceAll(/:(?!\d\d:)(?=[\w+-]+:)/g, ":\u2060")
  );
}

/**
 * Untrusted text for Slack's `text`, with its line breaks. Text that is already escaped stays as it
 * is.
 */
export function inert(text: string): string {
  return text
    .split("\n")
    .map((line) => line.replaceAll(unseen, ""))
    .join("\n")
    .replaceAll(/&(?!(?:amp|lt|gt);)/g, "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}

/** Safe mrkdwn: `md` returns it, and inserts it without escaping. */
export class Markdown {
  readonly value: string;
  constructor(value: string) {
    this.value = value;
  }
  toString(): string {
    return this.value;
  }
}

/** A mrkdwn template that escapes its values: md`*${vm.name}* is ${vm.status}`. */
export function md(parts: TemplateStringsArray, ...values: readonly unknown[]): Markdown {
  let text = parts[0] ?? "";
  for (const [index, value] of values.entries()) {
    text +=
      (value instanceof Markdown ? value.value : escapeInside(value)) + (parts[index + 1] ?? "");
  }
  return new Markdown(text);
}

/** Escapes a value and keeps a space at either end, because a value may be part of a sentence. */
function escapeInside(value: unknown): string {
  const text = String(value);
  const inner = escape(text, 3000);
  if (inner === "") return text === "" ? "" : " ";
  return `${/^\s/.test(text) ? " " : ""}${inner}${/\s$/.test(text) ? " " : ""}`;
}

type Rows = readonly (Markdown | undefined | false)[];

const joined = (rows: Rows, between: string) =>
  new Markdown(rows.flatMap((row) => (row && row.value !== "" ? [row.value] : [])).join(between));

/** Pieces of mrkdwn, one on each line, without empty ones. */
export const lines = (...rows: Rows): Markdown => joined(rows, "\n");

/** Pieces of mrkdwn on one line, separated by dots, without empty ones. */
export const dotted = (...rows: Rows): Markdown => joined(rows, " · ");

/** Mrkdwn without mentions as plain words, for places where Slack shows no markup. */
export function plainWords(text: Markdown): string {
  return readable(text)
    .value.replaceAll("\u2060", "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
}

/** A name or an ID as inline code. */
export function name(value: unknown, most = 150): Markdown {
  const inner = plain(value, most)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll("`", "ˋ");
  return new Markdown(inner === "" ? "` `" : `\`${inner}\``);
}

/** Mentions a person, which notifies them. */
export function mention(userId: string): Markdown {
  return /^[UW][A-Z0-9]{2,}$/.test(userId) ? new Markdown(`<@${userId}>`) : name(userId);
}

export function channelLink(channelId: string): Markdown {
  return /^[CGD][A-Z0-9]{2,}$/.test(channelId) ? new Markdown(`<#${channelId}>`) : name(channelId);
}

/** Formats of Slack for a time in the reader's own zone. */
type TimeFormat =
  | "{time}"
  | "{time_secs}"
  | "{date_short_pretty} {time}"
  | "{date_short_pretty} at {time}"
  | "{date_short} {time}";

/**
 * A time in the reader's own zone. Notifications, and clients that can't show it, have UTC. `at` is
 * in milliseconds.
 */
export function when(at: number, format: TimeFormat = "{time_secs}"): Markdown {
  const hasSeconds = format === "{time_secs}";
  const fallback = format.includes("date")
    ? utcWords(at)
    : `${clockWords(at, "UTC", { hasSeconds })} UTC`;
  return new Markdown(`<!date^${Math.floor(at / 1000)}^${format}|${fallback}>`);
}

/** A time with its day in the reader's own zone: `today 9:00 AM`. */
export const dayAndTime = (at: number): Markdown => when(at, "{date_short_pretty} {time}");

const isClear = (at: number, now: number) => Math.abs(now - at) < clearForMs;

/** A time, with its day where the time alone leaves that open: `11:56 AM`, `yesterday 11:56 PM`. */
export const timeNear = (at: number, now: number): Markdown =>
  isClear(at, now) ? when(at, "{time}") : dayAndTime(at);

/** A time within a sentence: `at 11:56 AM`, `yesterday at 11:56 PM`. */
export const atTime = (at: number, now: number): Markdown =>
  isClear(at, now) ? md`at ${when(at, "{time}")}` : when(at, "{date_short_pretty} at {time}");

/** Ends a sentence, unless what it quotes ends with a full stop: `denied it: “Fix forward.”` */
export const withFullStop = (text: Markdown): Markdown =>
  /[.!?…][”"]?$/.test(text.value) ? text : md`${text}.`;

/** A number with its noun: `1 VM`, `2,000 VMs`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;
}

/** Names as inline code: `a`, `b` and 3 more. */
export function listed(names: readonly string[], most = 6): Markdown {
  const [first = md``, ...rest] = names.slice(0, most).map((one) => name(one));
  const together = rest.reduce((all, one) => md`${all}, ${one}`, first);
  const more = names.length - most;
  return more > 0 ? md`${together} and ${more.toLocaleString("en-US")} more` : together;
}

/** The first `most` names: `web-1, web-2 and 3 more`. */
export function firstFew(names: readonly string[], most: number): string {
  const more = names.length > most ? ` and ${names.length - most} more` : "";
  return `${names.slice(0, most).join(", ")}${more}`;
}

/** 850 ms → "1 s", 95,000 → "1 min 35 s", 7,500,000 → "2 h 5 min". */
export function duration(milliseconds: number): string {
  const seconds = Math.max(1, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60)
    return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d`;
}

/** A code span of a hint: a channel as a link, everything else as inline code. */
function coded(part: string): Markdown {
  return /^C[A-Z0-9]{5,}$/.test(part) ? channelLink(part) : name(part);
}

/** Renders a hint, which may contain code spans. Everything outside them is escaped. */
export function hintOf(hint: string | undefined): Markdown | undefined {
  if (hint === undefined) return undefined;
  const parts = hint.split("`");
  return parts.reduce(
    (all, part, index) => (index % 2 === 1 ? md`${all}${coded(part)}` : md`${all}${part}`),
    new Markdown(""),
  );
}

/** Mrkdwn as words, for notifications and screen readers. */
export function readable(text: Markdown): Markdown {
  return new Markdown(
    text.value
      .replaceAll(/<!date\^\d+\^[^|>]*\|([^>]*)>/g, "$1")
      .replaceAll(/<([@#])([A-Z0-9]+)(?:\|[^>]*)?>/g, "<$1$2>")
      .replaceAll(/[*`]/g, ""),
  );
}

/** A locked phone shows about this many characters. */
export const maxNews = 150;

/** One line of plain words, without mentions and IDs, cut between words. */
function news(text: Markdown): Markdown {
  const line = readable(text)
    .value.replaceAll(/<[@#!][^>]*>/g, "")
    .replaceAll(/ \((?:r|roll)-[a-z0-9]+\)/g, "")
    .replaceAll(/\s+/g, " ")
    .trim();
  if (line.length <= maxNews) return new Markdown(line);
  const room = line.slice(0, maxNews - 1);
  const end = room.lastIndexOf(" ");
  return new Markdown(`${end > maxNews / 2 ? room.slice(0, end) : room.replace(/&\w*$/, "")}…`);
}
