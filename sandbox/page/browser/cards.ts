/// <reference lib="dom" />
import type { SeenBlock, SeenChannel, SeenMessage } from "../../slack/seen.ts";
import { textOf, wordsOf } from "../../slack/fields.ts";
import type { Gallery } from "../gallery.ts";
import { drawBlocks } from "./blocks/blocks.ts";
import { el } from "./dom/dom.ts";
import type { Surface } from "./elements/surface.ts";
import { drawMessage } from "./panes/message.ts";
import { drawMrkdwn } from "./text/draw-text.ts";

type Card = Gallery["cards"][number];

const frames = [
  ["wide", "light"],
  ["phone", "light"],
  ["wide", "dark"],
  ["phone", "dark"],
] as const;

/** Nobody is behind the buttons here. */
const doNothing: Surface["do"] = async () => undefined;

async function start(): Promise<void> {
  const names = new URLSearchParams(location.search).get("names") === "long" ? "long" : "usual";
  const answer = await fetch(`/cards.json?names=${names}`);
  if (!answer.ok) {
    document.body.append(el("p", { class: "empty" }, await answer.text()));
    return;
  }
  const gallery: Gallery = await answer.json();
  const groups = Map.groupBy(gallery.cards, ({ group }) => group);
  document.body.append(
    el(
      "main",
      { class: "gallery" },
      drawTop([...groups.keys()], names),
      [...groups].map(([group, cards]) =>
        el(
          "section",
          { id: group },
          el("h2", {}, group),
          cards.map((card) => drawCard(card, gallery)),
        ),
      ),
    ),
  );
  if (location.hash !== "") document.querySelector(location.hash)?.scrollIntoView();
}

function drawTop(groups: readonly string[], names: "usual" | "long"): HTMLElement {
  const other =
    names === "long"
      ? el("a", { href: "/cards" }, "Usual names")
      : el("a", { href: "/cards?names=long" }, "Names as long as they come");
  return el(
    "header",
    {},
    el("h1", {}, "Every card"),
    el("p", {}, "As on a desktop and on a phone, light and dark. Buttons do nothing here. ", other),
    el(
      "nav",
      { "aria-label": "Groups" },
      groups.map((group) => el("a", { href: `#${group}` }, group)),
    ),
  );
}

function drawCard(card: Card, gallery: Gallery): HTMLElement {
  const { name, push, words } = card;
  return el(
    "article",
    { class: "specimen", "aria-label": name },
    el(
      "div",
      { class: "specimen-words" },
      el("h3", {}, name),
      push === undefined
        ? el("p", { class: "about" }, "Notifies nobody.")
        : el(
            "div",
            { class: "locked" },
            el("small", {}, `On a locked phone: ${push.reader}`),
            el("p", { class: "push" }, plainOf(push.text, gallery)),
          ),
      el("h4", {}, "In words"),
      el("p", { class: "plain-words" }, plainOf(words, gallery)),
    ),
    el(
      "div",
      { class: "frames" },
      frames.map(([width, light], n) =>
        el(
          "div",
          {
            class: `frame ${width} ${light}`,
            inert: true,
            "aria-hidden": n > 0 ? "true" : undefined,
          },
          drawShown(card, gallery, `${width} ${light} ${name}`),
        ),
      ),
    ),
  );
}

/** The words of mrkdwn, with people, channels, and times as a reader sees them. */
const plainOf = (text: string, { seen }: Gallery) =>
  text
    .split("\n")
    .map((line) => el("span", {}, drawMrkdwn(line, seen)).textContent)
    .join("\n");

function drawShown({ shown }: Card, gallery: Gallery, id: string): HTMLElement {
  const blocks = shown.blocks.map((block, n): SeenBlock => ({
    type: "",
    block_id: `b${n}`,
    ...block,
  }));
  if ("type" in shown)
    return shown.type === "home"
      ? el("div", { class: "home-body" }, drawView(blocks, "home", gallery, id))
      : drawModal({ ...shown, blocks }, gallery, id);
  const { bot } = gallery.seen;
  const message: SeenMessage = {
    ts: String(gallery.seen.at / 1000),
    channelId: channel.id,
    author: { id: bot.userId, name: bot.name, isBot: true },
    text: shown.text,
    blocks,
    ephemeral: false,
    edited: false,
    deleted: false,
    files: [],
    replyCount: 0,
    state: {},
  };
  const spec = { seen: gallery.seen, channel, do: doNothing };
  return el("div", { class: "messages" }, drawMessage(message, false, [], spec));
}

const channel: SeenChannel = {
  id: "C01OPS",
  name: "ops",
  kind: "public",
  member: true,
  archived: false,
  readOnly: false,
  botIsMember: true,
  memberIds: [],
  messages: [],
};

const drawView = (
  blocks: readonly SeenBlock[],
  where: "modal" | "home",
  { seen }: Gallery,
  id: string,
) => drawBlocks(blocks, { seen, where, id, state: {}, errors: {}, do: doNothing });

function drawModal(
  view: { blocks: readonly SeenBlock[] },
  gallery: Gallery,
  id: string,
): HTMLElement {
  const { title, submit, close } = view as unknown as Record<string, unknown>;
  const submits = submit === undefined ? null : wordsOf(submit);
  return el(
    "div",
    { class: "modal" },
    el("header", {}, el("h2", {}, wordsOf(title))),
    el("div", { class: "modal-body" }, drawView(view.blocks, "modal", gallery, id)),
    el(
      "footer",
      {},
      el("button", { type: "button", class: "button" }, textOf(wordsOf(close), "Close")),
      submits && el("button", { type: "button", class: "button primary" }, submits),
    ),
  );
}

void start();
