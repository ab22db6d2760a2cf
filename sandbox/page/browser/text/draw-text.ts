import { fieldsOf, textOf } from "../../../slack/fields.ts";
import type { Seen } from "../../../slack/seen.ts";
import { el, link } from "../dom/dom.ts";
import { emojiOf } from "./emoji.ts";
import { type Inline, type Paragraph, parseMrkdwn } from "./mrkdwn.ts";
import { dateInWords, fullTimeOf } from "./time.ts";

export type Names = Pick<Seen, "me" | "people" | "groups" | "channels">;

/** A text object: mrkdwn is read, plain text stands as it is. */
export function drawText(value: unknown, names: Names): Node {
  const { type, text } = fieldsOf(value);
  if (type === "mrkdwn") return drawMrkdwn(textOf(text), names);
  return el("span", { class: "plain" }, typeof value === "string" ? value : textOf(text));
}

export function drawMrkdwn(text: string, names: Names): Node {
  const all = document.createDocumentFragment();
  for (const paragraph of parseMrkdwn(text)) all.append(drawParagraph(paragraph, names));
  return all;
}

function drawParagraph(paragraph: Paragraph, names: Names): Node {
  if (paragraph.kind === "pre") return el("pre", {}, paragraph.text);
  const inner = drawInline(paragraph.inner, names);
  return paragraph.kind === "quote"
    ? el("blockquote", {}, inner)
    : el("span", { class: "words" }, inner);
}

function drawInline(nodes: readonly Inline[], names: Names): Node[] {
  return nodes.map((node) => drawNode(node, names));
}

function drawNode(node: Inline, names: Names): Node {
  switch (node.kind) {
    case "text":
      return document.createTextNode(node.text);
    case "bold":
      return el("b", {}, drawInline(node.inner, names));
    case "italic":
      return el("i", {}, drawInline(node.inner, names));
    case "strike":
      return el("s", {}, drawInline(node.inner, names));
    case "code":
      return el("code", {}, node.text);
    case "break":
      return el("br");
    case "emoji":
      return document.createTextNode(emojiOf(node.name));
    case "link":
      return link(node.url, drawInline(node.inner, names));
    case "everyone":
      return el("span", { class: "mention me" }, `@${node.word}`);
    case "date":
      return drawDate(node);
    default:
      return drawMention(node.kind, node.id, names, node.label);
  }
}

/** A name that is lit when it means the reader. Someone unknown shows as their id. */
export function drawMention(
  kind: "person" | "channel" | "group",
  id: string,
  names: Names,
  label = "",
): HTMLElement {
  if (kind === "channel") {
    const channel = names.channels.find((known) => known.id === id);
    const name = channel?.name ?? (label || "private-channel");
    return el("a", { class: "mention", href: `#${id}`, "data-channel": id }, `#${name}`);
  }
  if (kind === "group") {
    const group = names.groups.find((known) => known.id === id);
    const mine = group?.userIds.includes(names.me.id) ?? false;
    return el(
      "span",
      { class: mine ? "mention me" : "mention" },
      `@${group?.handle ?? (label || id)}`,
    );
  }
  const person = names.people.find((known) => known.id === id);
  return el(
    "span",
    { class: id === names.me.id ? "mention me" : "mention" },
    `@${person?.realName ?? (label || id)}`,
  );
}

function drawDate(node: Extract<Inline, { kind: "date" }>): HTMLElement {
  const at = node.seconds * 1000;
  if (Number.isNaN(new Date(at).getTime())) return el("span", {}, node.fallback);
  const words = dateInWords(node.seconds, node.format) ?? node.fallback;
  const time = el("time", { datetime: new Date(at).toISOString(), title: fullTimeOf(at) }, words);
  return node.url === "" ? time : link(node.url, time);
}
