/**
 * Text from the service or from people is data: it can't mention, link or break out of its place.
 * Slack needs only &, < and > escaped (https://docs.slack.dev/messaging/formatting-message-text), but that leaves
 * backticks, which close a code span, *_~, which style, and characters that can't be seen, which deceive.
 */

// Zero-width, bidi controls and line separators, and every C0/C1 control character.
const unseen =
  /[\p{Cc}\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;

/** One line without anything invisible, cut at `most` characters (whole code points) with an ellipsis. */
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
      // `@here` and `:emoji:` in plain mrkdwn: a word joiner after the sign keeps both inert and looks the same
      .replaceAll(/@(?=\w)/g, "@\u2060")
      .replaceAll(/:(?!\d\d:)(?=[\w+-]+:)/g, ":\u2060")
  );
}

/** Untrusted text as Slack's `text`, line breaks kept: it can't mention or link. What is escaped already stays so. */
export function inert(text: string): string {
  return text
    .split("\n")
    .map((line) => line.replaceAll(unseen, ""))
    .join("\n")
    .replaceAll(/&(?!(?:amp|lt|gt);)/g, "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}

/** A name in a code span: the usual dress of ids and names. */
export function code(value: unknown, most = 150): string {
  const inner = plain(value, most)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll("`", "ˋ");
  return inner === "" ? "` `" : `\`${inner}\``;
}

/** Mrkdwn already made safe: what `md` returns and what it takes without escaping. */
export class Markdown {
  readonly value: string;
  constructor(value: string) {
    this.value = value;
  }
  toString(): string {
    return this.value;
  }
}

/** A mrkdwn template that escapes what is put in: md`*${vm.name}* is ${vm.status}`. */
export function md(parts: TemplateStringsArray, ...values: readonly unknown[]): Markdown {
  let text = parts[0] ?? "";
  for (const [index, value] of values.entries()) {
    text +=
      (value instanceof Markdown ? value.value : escapeInside(value)) + (parts[index + 1] ?? "");
  }
  return new Markdown(text);
}

/** Escaped, with a space at either end kept: what is put in may be a part of a sentence. */
function escapeInside(value: unknown): string {
  const text = String(value);
  const inner = escape(text, 3000);
  if (inner === "") return text === "" ? "" : " ";
  return `${/^\s/.test(text) ? " " : ""}${inner}${/\s$/.test(text) ? " " : ""}`;
}

/** Mrkdwn pieces on one line each, empty ones left out. */
export function lines(...rows: readonly (Markdown | undefined | false)[]): Markdown {
  return new Markdown(
    rows
      .filter((row) => row instanceof Markdown && row.value !== "")
      .map((row) => (row as Markdown).value)
      .join("\n"),
  );
}

/** `name` as inline code, inside md``. */
export function name(value: unknown): Markdown {
  return new Markdown(code(value));
}

/** Mentions a person and notifies them: ids only, checked. */
export function mention(userId: string): Markdown {
  return /^[UW][A-Z0-9]{2,}$/.test(userId)
    ? new Markdown(`<@${userId}>`)
    : new Markdown(code(userId));
}

export function channelLink(channelId: string): Markdown {
  return /^[CGD][A-Z0-9]{2,}$/.test(channelId)
    ? new Markdown(`<#${channelId}>`)
    : new Markdown(code(channelId));
}

/** A time in the reader's own zone, with a UTC fallback. `at` is milliseconds since the epoch. */
export function when(at: number, format = "{time_secs}"): Markdown {
  const fallback = `${new Date(at).toISOString().slice(11, 19)} UTC`;
  return new Markdown(`<!date^${Math.floor(at / 1000)}^${format}|${fallback}>`);
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

/** Hints are ours and may hold code spans: everything outside them is escaped. */
export function hintOf(hint: string | undefined): Markdown | undefined {
  if (hint === undefined) return undefined;
  const parts = hint.split("`");
  return parts.reduce(
    (all, part, index) => (index % 2 === 1 ? md`${all}${name(part)}` : md`${all}${part}`),
    new Markdown(""),
  );
}
