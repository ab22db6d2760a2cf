import { context, message, type Message, news, section } from "../messages/message.ts";
import { Markdown, md, name } from "../messages/text.ts";
import type { Line } from "./subscriptions.ts";

/** The rest is counted. */
const maxLines = 15;

/** What a channel is subscribed to, as it happened: one line, or some that came together. Without mentions. */
export function renderFeed(lines: readonly Line[]): Message {
  const shown = lines.slice(0, maxLines);
  const rows = shown.map(({ text, link, button }) =>
    section(new Markdown(link === undefined ? text : `${text} <${link}|Its message>`), button),
  );
  const more = lines.length - shown.length;
  const [first] = shown;
  const head = md`*${lines.length.toLocaleString("en-US")} events this channel is subscribed to:*`;
  const isOne = lines.length === 1 && first !== undefined;
  return message(
    news(isOne ? new Markdown(first.text) : md`${head} ${new Markdown(first?.text ?? "")}`),
    isOne ? undefined : section(head),
    rows,
    context(
      md`${more > 0 ? `… and ${more.toLocaleString("en-US")} more. ` : ""}${name("/gatehouse subscribe")} shows what this channel is subscribed to.`,
    ),
  );
}
