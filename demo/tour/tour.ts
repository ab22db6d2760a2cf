import {
  describeMessage,
  type FormValues,
  type PersonActions,
  type SeenMessage,
  wordsIn,
} from "../../sandbox/slack/acts/index.ts";
import type { World } from "../world.ts";

/** What a step of the tour can do, see and claim. Whatever it does is printed; what doesn't hold ends the tour. */
export interface Tour {
  world: World;
  /** Says what happens next. */
  scene(text: string): void;
  /** What someone types, shown and done. */
  types(who: PersonActions, channel: string, text: string): Promise<void>;
  /** All at once; the first is shown. */
  typesAll(who: PersonActions, channel: string, texts: readonly string[]): Promise<void>;
  /** `place`: `home`, the ts of a message, or where this person looks first. */
  presses(who: PersonActions, label: string, place?: string): Promise<void>;
  /** Waits until this person sees a message with these words in a channel or its threads, and prints it. */
  sees(who: PersonActions, channel: string, words: RegExp): Promise<SeenMessage>;
  /** Waits until this person has a dialog with these words open, and prints it. */
  dialog(who: PersonActions, words: RegExp): Promise<void>;
  submits(who: PersonActions, values: FormValues): Promise<void>;
  /** Says what a program asked at the API, and what it was answered. */
  program(who: string, did: string, answer: string): void;
  /** Waits, looking at every change in Slack, until it is so. */
  until(what: string, who: PersonActions, isSo: () => boolean): Promise<void>;
  /** Everything that was logged. */
  lines: string[];
  /** What was shown to someone and must be found nowhere afterwards. */
  secrets: string[];
  /** Says that something must hold. */
  holds(what: string, isSo: boolean): void;
}

/** A message as one reads it: without the signs that style it, and with fields in a row. */
function readable(message: SeenMessage): string {
  return plain(inRows(describeMessage(message)).join("\n"));
}

/** `*Project*` above `payments` and so on: one line of them all. */
function inRows(lines: readonly string[]): string[] {
  const rows: string[] = [];
  let isInRow = false;
  for (let at = 0; at < lines.length; at += 1) {
    const [line = "", value = ""] = lines.slice(at);
    const name = /^(\s+)\*([^*]+)\*$/.exec(line);
    if (!name || /^\s*(\*|\[|$)/.test(value)) {
      isInRow = false;
      rows.push(line);
      continue;
    }
    at += 1;
    const field = `${name[2]}: ${value.trim()}`;
    if (isInRow) rows.push(`${rows.pop()} · ${field}`);
    else rows.push(`${name[1]}${field}`);
    isInRow = true;
  }
  return rows;
}

/** The demo's people live in Paris. */
const timeZone = "Europe/Paris";
const clock = new Intl.DateTimeFormat("en-GB", { timeZone, hour: "2-digit", minute: "2-digit" });
const calendar = new Intl.DateTimeFormat("en-US", { timeZone, month: "short", day: "numeric" });

/** So many lines below its first are shown of a message, and its buttons. */
const mostLines = 3;

/**
 * Its first line and the next few, without the label that an input repeats and what was printed before (`known`); buttons
 * share a line.
 */
function shortened(text: string, known: Set<string>): string {
  const [first = "", ...rest] = text.split("\n");
  const isButton = (line: string) => /^\s*(↳\s*)?\[/.test(line);
  const isNew = (line: string) =>
    !known.has(line.trim()) && !rest.includes(/^\[(.*)\]$/.exec(line)?.[1] ?? "[");
  const news = rest.filter(isNew);
  const lines = news.filter((line) => !isButton(line));
  const buttons = news.filter(isButton).map((line, at) => (at === 0 ? line : line.trim()));
  for (const line of [...lines.slice(0, mostLines), ...buttons]) known.add(line.trim());
  const left = lines.length - mostLines;
  return [
    first,
    ...lines.slice(0, mostLines),
    ...(left > 0 ? [`    … ${left} more ${left === 1 ? "line" : "lines"}`] : []),
    ...(buttons.length > 0 ? [buttons.join(" ")] : []),
  ].join("\n");
}

function plain(text: string): string {
  return (
    text
      .replaceAll(/<!date\^(\d+)\^([^|>]*)\|[^>]*>/g, (_whole, seconds: string, format: string) => {
        const at = Number(seconds) * 1000;
        return `${format.includes("date") ? `${calendar.format(at)} ` : ""}${clock.format(at)}`;
      })
      .replaceAll(/<!subteam\^S\d*([A-Z]+)>/g, (_whole, id: string) => `@${id.toLowerCase()}`)
      .replaceAll(/<#C\d*([A-Z]+)>/g, (_whole, id: string) => `#${id.toLowerCase()}`)
      .replaceAll(/<https?:[^|>]*\|([^>]*)>/g, "$1")
      .replaceAll(/<@U0([A-Z]+)>/g, (_whole, id: string) => `@${id.toLowerCase()}`)
      // A star in a code span is a glob
      .replaceAll(/`([^`]*)`|\*/g, (_whole, code?: string) => code ?? "")
      .replaceAll("&lt;", "<")
      .replaceAll("&gt;", ">")
      .replaceAll("&amp;", "&")
  );
}

const dim = (text: string) => (process.stdout.isTTY ? `\u001b[2m${text}\u001b[0m` : text);
const bold = (text: string) => (process.stdout.isTTY ? `\u001b[1m${text}\u001b[0m` : text);

export const print = (text: string) => void process.stdout.write(`${text}\n`);
const indent = (text: string) =>
  text
    .split("\n")
    .map((row) => `      ${row}`)
    .join("\n");

/** `lines`: the log of this world, which goes on growing. */
export function createTour(world: World, lines: string[]): Tour {
  const known = new Set<string>();
  async function typed(who: PersonActions, channel: string, text: string): Promise<number> {
    const { acked, ackMs, error } = await who.types(channel, text);
    if (!acked && text.startsWith("/"))
      throw new Error(`not acknowledged: ${error ?? "no reason"}`);
    return ackMs;
  }
  const says = (who: PersonActions, channel: string, text: string, ackMs: number) =>
    print(`  ${who.name} in #${channel}: ${text} ${dim(`(${ackMs.toFixed(0)} ms)`)}`);
  return {
    world,
    scene: (text) => print(`\n${bold(text)}`),
    types: async (who, channel, text) => says(who, channel, text, await typed(who, channel, text)),
    async typesAll(who, channel, texts) {
      const [first = "", ...others] = texts;
      const all = await Promise.all(texts.map((text) => typed(who, channel, text)));
      says(who, channel, `${first}, and ${others.length} more like it`, Math.max(...all));
    },
    async presses(who, label, place) {
      // A card gets its buttons after the result
      await who.until((seen) => JSON.stringify(seen).includes(`"text":"${label}"`));
      print(`  ${who.name} presses [${label}]${place === "home" ? " at Home" : ""}`);
      const { acked, error } = await who.presses(label, place === undefined ? {} : { in: place });
      if (!acked) throw new Error(`[${label}] was not acknowledged: ${error ?? "no reason"}`);
    },
    async sees(who, channel, words) {
      const find = () =>
        who.seesChannel(channel).messages.findLast((message) => words.test(readable(message)));
      await who.until(() => find() !== undefined);
      const found = find();
      if (!found) throw new Error(`no one saw ${String(words)}`);
      print(indent(shortened(readable(found), known)));
      return found;
    },
    async dialog(who, words) {
      const text = () =>
        plain(
          who
            .sees()
            .modals.flatMap((modal) => [modal.title, ...wordsIn(modal.blocks)])
            .join("\n"),
        );
      await who.until(() => words.test(text()));
      print(indent(`┌ ${shortened(text(), known).replaceAll("\n", "\n│ ")}`));
    },
    async submits(who, values) {
      const label = who.sees().modals.at(-1)?.submit ?? "Submit";
      const filled = Object.entries(values).map(([field, value]) => `“${field}”: ${String(value)}`);
      const fills = filled.length > 0 ? `fills in ${filled.join(", ")}, and ` : "";
      print(`  ${who.name} ${fills}presses [${label}]`);
      const { acked, errors } = await who.submits(values);
      if (!acked || errors)
        throw new Error(
          `the dialog was not accepted: ${JSON.stringify(errors ?? "not acknowledged")}`,
        );
    },
    program(who, did, answer) {
      print(`  ${who} ${did}`);
      print(indent(`→ ${answer.replaceAll("\n", "\n  ")}`));
    },
    async until(what, who, isSo) {
      await who.until(isSo);
      print(`    ✓ ${what}`);
    },
    lines,
    secrets: [],
    holds(what, isSo) {
      print(`    ${isSo ? "✓" : "✗"} ${what}`);
      if (!isSo) throw new Error(`does not hold: ${what}`);
    },
  };
}
