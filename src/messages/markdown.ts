import { unseen } from "../text/terminal.ts";
import { clockWords, utcWords, clearForMs } from "../text/time-words.ts";

// Text from the compute service or from people must not mention, link, or style. Slack asks only for
// &, <, and > to be escaped (https://docs.slack.dev/messaging/formatting-message-text), which leaves
// backticks, *_~, and invisible characters to the functions below.

/** Words of visible ASCII with a space between them, as most texts are, are plain already. */
const isPlain = /^[!-~]+(?: [!-~]+)*$/;

/** One line without invisible characters, cut at `most` code points with an ellipsis. */
export function plain(value: unknown, most = 150): string {
  const given = String(value);
  const text = isPlain.test(given)
    ? given
    : given.replaceAll(/\s+/g, " ").replaceAll(unseen, "").trim();
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

/** What Slack may take for markup, a mention or an emoji. */
const markup = /[&<>`*~_@:]/;

/** Untrusted text inside mrkdwn. It is shown as it reads, never as markup. */
export function escape(value: unknown, most = 150): string {
  const text = plain(value, most);
  if (!markup.test(text)) return text;
  return (
    text
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

export type Rows = readonly (Markdown | undefined | false)[];

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
export function counted(count: number, noun: string, many = `${noun}s`): string {
  return `${count.toLocaleString("en-US")} ${count === 1 ? noun : many}`;
}

/** Names as inline code: `a`, `b` and 3 more. */
export function listed(names: readonly string[], most = 6): Markdown {
  const [first = md``, ...rest] = names.slice(0, most).map((text) => name(text));
  const together = rest.reduce((all, code) => md`${all}, ${code}`, first);
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
      // A code span shows its text as it is: the glob `web-*`.
      .replaceAll(/`([^`]*)`|[*`]/g, (_styled, code: string = "") => code),
  );
}
