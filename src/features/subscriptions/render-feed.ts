import { type Message } from "../../messages/blocks.ts";
import { paragraph } from "../../messages/parts.ts";
import { list, card } from "../../messages/card.ts";
import { Markdown, name as code, counted, md } from "../../messages/markdown.ts";
import type { NewsLine } from "../../monitor/news.ts";

/** Further lines are only counted. */
const maxLines = 15;

/**
 * Renders events that a channel is subscribed to: one line, or several that came together. It
 * mentions nobody.
 */
export function renderFeed(lines: readonly NewsLine[]): Message {
  const shown = lines.slice(0, maxLines);
  const rows = shown.map(({ text, link, button }) =>
    paragraph(new Markdown(link === undefined ? text : `${text} <${link}|Its message>`), button),
  );
  const first = new Markdown(shown[0]?.text ?? "");
  const head = md`*${counted(lines.length, "event")} this channel is subscribed to:*`;
  return card({
    title: lines.length === 1 ? undefined : head,
    push: lines.length === 1 ? first : md`${head} ${first}`,
    body: [
      list(rows, {
        beyond: lines.length - shown.length,
        rest: (left) => md`… and ${left.toLocaleString("en-US")} more.`,
      }),
    ],
    meta: [md`${code("/gatehouse subscribe")} shows what this channel is subscribed to.`],
  });
}
