import type { PlainTextElement } from "@slack/types";
import { cut } from "./limits.ts";
import { Markdown, plain } from "./markdown.ts";

export function plainText(text: string, most = 150): PlainTextElement {
  return { type: "plain_text", text: plain(text, most) || " ", emoji: false };
}

/** With `verbatim`, Slack doesn't turn names and channels into links. */
export function mrkdwn(text: Markdown, most: number) {
  return { type: "mrkdwn" as const, text: cut(text.value, most) || " ", verbatim: true };
}
