import { type Block, type Message, blocksOfPart, context } from "./blocks.ts";
import type { ButtonSpec } from "./buttons.ts";
import { addedWeight, blockWeight, cut, limits, weightOf } from "./limits.ts";
import { Markdown, type Rows, lines, md, readable } from "./markdown.ts";
import {
  type SaidPart,
  type TablePart,
  headingOf,
  isSaidPart,
  linesOf,
  paragraph,
  small,
  waysRow,
} from "./parts.ts";
import { soundingApart } from "./sounding-apart.ts";

/**
 * How many characters one more block may have next to these parts, with space left for later
 * additions.
 */
export const roomBeside = (...parts: Parts): number =>
  limits.weight - addedWeight - blockWeight - weightOf(blocksIn(parts));

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

/** What a message may consist of. A message as a part of another is shown there as it is. */
export type Part = SaidPart | Pick<Message, "blocks"> | readonly Part[] | List | undefined;
type Parts = readonly Part[];

/**
 * A list of rows of one or more blocks, the most important first. `rest` renders a note about the
 * rows that aren't shown, plus `beyond` others.
 */
export function list(
  rows: readonly (SaidPart | readonly SaidPart[])[],
  {
    beyond = 0,
    rest = moreWords,
  }: {
    beyond?: number;
    rest?: (left: number, shown: number) => SaidPart | Markdown | undefined;
  } = {},
): List {
  return new List(rows.length, (shown) => {
    const left = rows.length - shown + beyond;
    const more = left > 0 ? rest(left, shown) : undefined;
    return [...rows.slice(0, shown), more instanceof Markdown ? small(more) : more];
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
    return [linesOf(rows.slice(0, shown)), left > 0 ? small(rest(left)) : undefined];
  });
}

/**
 * The blocks of all parts. A list is as short as possible unless `shown` says how many of its items
 * are shown.
 */
export const blocksIn = (parts: Parts, shown: ReadonlyMap<List, number> = new Map()): Block[] =>
  parts.flatMap((part): readonly Block[] => {
    if (part === undefined) return [];
    if (part instanceof List) return part.blocksOf(shown.get(part) ?? 0);
    if (isPartList(part)) return blocksIn(part, shown);
    return isSaidPart(part) ? blocksOfPart(part) : part.blocks;
  });

const isPartList = (part: Part): part is readonly Part[] => Array.isArray(part);

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
  const signed = title && (sign === undefined ? title : md`${sign} ${title}`);
  const first = lines(signed, ...below);
  const rows = ways.every((way) => "label" in way) ? [ways] : ways;
  return message(
    readable(push ?? signed ?? md`${heading ?? ""}`),
    above && above.value !== "" ? paragraph(above) : undefined,
    heading === undefined ? undefined : headingOf(heading),
    first.value === "" ? undefined : paragraph(first),
    ...body,
    ...meta.flatMap((text) => (text && text.value !== "" ? [small(text)] : [])),
    ...rows.map((row) => waysRow(row)),
  );
}

/** The message with more parts below it. */
export const withParts = (above: Message, ...below: Parts): Message =>
  message(new Markdown(above.text), above, ...below);

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
    blocks: soundingApart(fitting(blocksIn(parts, shown))),
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
  rows: readonly (readonly Part[])[],
  tableFrom: (from: number, room: number) => { part: TablePart | undefined; shown: number },
): Message {
  const body = new List(rows.length, (many) => {
    const shown = rows.slice(0, many);
    const room = Math.max(leastForTable, roomBeside(paragraph(head), shown));
    const rest = many < all ? tableFrom(many, room) : { part: undefined, shown: 0 };
    const shownCount = many + rest.shown;
    const cutHead = new Markdown(
      `${head.value.replace(/\.$/, "")}. The first ${shownCount} are shown.`,
    );
    return [paragraph(shownCount < all ? cutHead : head), shown, rest.part];
  });
  return card({ push: head, body: [body] });
}
