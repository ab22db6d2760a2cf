/**
 * Text from the compute service or from people can't mention, link, or style. Slack needs only &, <, and > escaped
 * (https://docs.slack.dev/messaging/formatting-message-text), which leaves backticks, *_~, and invisible characters.
 */

// Zero-width characters, bidi controls, line separators, and C0/C1 controls
const unseen =
  /[\p{Cc}\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;

/** One line without invisible characters, cut at `most` code points with an ellipsis. */
export function plain(value: unknown, most = 150): string {
  const text = String(value).replaceAll(/\s+/g, " ").replaceAll(unseen, "").trim();
  const points = Array.from(text);
  return points.length <= most ? text : `${points.slice(0, most - 1).join("")}…`;
}

const lookalikes: Record<string, string> = { "`": "ˋ", "*": "∗", _: "＿", "~": "∼" };

/** Untrusted text inside mrkdwn: shown as it reads, never as markup. */
export function escape(value: unknown, most = 150): string {
  return (
    plain(value, most)
      .replaceAll("&", "&amp;")
      .replaceAll("<", "&lt;")
      .replaceAll(">", "&gt;")
      .replaceAll(/[`*~]/g, (c) => lookalikes[c] ?? c)
      .replaceAll(/(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, "＿")
      // A word joiner, which is invisible, keeps `@here` and `:emoji:` inert
      .replaceAll(/@(?=\w)/g, "@\u2060")
      .replaceAll(/:(?!\d\d:)(?=[\w+-]+:)/g, ":\u2060")
  );
}

/** Untrusted text as Slack's `text`, with its line breaks; what is already escaped stays so. */
export function inert(text: string): string {
  return text
    .split("\n")
    .map((line) => line.replaceAll(unseen, ""))
    .join("\n")
    .replaceAll(/&(?!(?:amp|lt|gt);)/g, "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}

/** Safe mrkdwn: what `md` returns, and inserts without escaping. */
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

/** Keeps a space at either end: a value may be part of a sentence. */
function escapeInside(value: unknown): string {
  const text = String(value);
  const inner = escape(text, 3000);
  if (inner === "") return text === "" ? "" : " ";
  return `${/^\s/.test(text) ? " " : ""}${inner}${/\s$/.test(text) ? " " : ""}`;
}

/** Mrkdwn pieces on one line each, without empty ones. */
export function lines(...rows: readonly (Markdown | undefined | false)[]): Markdown {
  const texts = rows.map((row) => (row ? row.value : ""));
  return new Markdown(texts.filter((text) => text !== "").join("\n"));
}

/** Mrkdwn without mentions as plain words, for what Slack shows without markup. */
export function plainWords(text: Markdown): string {
  return text.value
    .replaceAll(/<!date\^\d+\^[^|>]*\|([^>]*)>/g, "$1")
    .replaceAll(/[*`\u2060]/g, "")
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

/** Mentions a person, who is notified. */
export function mention(userId: string): Markdown {
  return /^[UW][A-Z0-9]{2,}$/.test(userId) ? new Markdown(`<@${userId}>`) : name(userId);
}

export function channelLink(channelId: string): Markdown {
  return /^[CGD][A-Z0-9]{2,}$/.test(channelId) ? new Markdown(`<#${channelId}>`) : name(channelId);
}

/** A time in the reader's own zone, with UTC as fallback. `at` is in milliseconds. */
export function when(
  at: number,
  format = "{time_secs}",
  fallback = `${new Date(at).toISOString().slice(11, 19)} UTC`,
): Markdown {
  return new Markdown(`<!date^${Math.floor(at / 1000)}^${format}|${fallback}>`);
}

/** `1 VM`, `2,000 VMs`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;
}

/** The first `most` of them: `web-1, web-2 and 3 more`. */
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

/** In a hint: a channel as a link, everything else as code. */
function coded(part: string): Markdown {
  return /^C[A-Z0-9]{5,}$/.test(part) ? channelLink(part) : name(part);
}

/** Hints may contain code spans; everything outside them is escaped. */
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

/** As much as a locked phone shows. */
const maxNews = 150;

/** For a message that notifies people: one line of plain words, without mentions and IDs, cut between words. */
export function news(text: Markdown): Markdown {
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
