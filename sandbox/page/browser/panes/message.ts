import type { Seen, SeenChannel, SeenMessage } from "../../../slack/seen.ts";
import { drawBlocks } from "../blocks/blocks.ts";
import { el, icon } from "../dom/dom.ts";
import { openMenu } from "../dom/menu.ts";
import { drawFile } from "../elements/images.ts";
import type { Do, Surface } from "../elements/surface.ts";
import { drawMrkdwn } from "../text/draw-text.ts";
import { dayOf, fullTimeOf, millisecondsOf, timeInMargin, timeOf } from "../text/time.ts";
import { drawAvatar } from "./people.ts";

export interface MessageSpec {
  seen: Seen;
  channel: SeenChannel;
  do: Do;
  /** Missing inside a thread. */
  openThread?: (ts: string) => void;
}

export function drawMessage(
  message: SeenMessage,
  follows: boolean,
  replies: readonly SeenMessage[],
  spec: MessageSpec,
): HTMLElement {
  const at = millisecondsOf(message.ts);
  const author = spec.seen.people.find((person) => person.id === message.author.id);
  const name = author?.realName ?? message.author.name;
  const time = el(
    "time",
    { datetime: new Date(at).toISOString(), title: fullTimeOf(at) },
    follows ? timeInMargin(at) : timeOf(at),
  );
  const classes = [
    "message",
    follows && "follows",
    message.ephemeral && "ephemeral",
    message.deleted && "deleted",
  ];
  return el(
    "article",
    {
      class: classes.filter(Boolean).join(" "),
      "data-ts": message.ts,
      "aria-label": `${name}, ${timeOf(at)}`,
    },
    el(
      "div",
      { class: "margin" },
      follows ? time : drawAvatar(message.author.id, name, message.author.isBot),
    ),
    el(
      "div",
      { class: "body" },
      message.ephemeral ? el("p", { class: "only-you" }, icon("eye"), "Only visible to you") : null,
      follows
        ? null
        : el(
            "header",
            {},
            el("b", { class: "author" }, name),
            message.author.isBot ? el("span", { class: "badge" }, "APP") : null,
            time,
          ),
      drawContent(message, spec),
      message.edited ? el("span", { class: "edited" }, "(edited)") : null,
      drawFooter(message, replies, spec),
    ),
    message.ephemeral || message.deleted ? null : drawTools(message, spec),
  );
}

function drawContent(message: SeenMessage, spec: MessageSpec): HTMLElement {
  const { seen } = spec;
  const surface: Surface = {
    seen,
    where: message.ts,
    channelId: message.channelId,
    id: `${seen.me.id}/${message.ts}`,
    state: message.state,
    errors: {},
    do: spec.do,
  };
  const words =
    message.blocks.length > 0
      ? drawBlocks(message.blocks, surface)
      : message.text === ""
        ? []
        : [el("div", { class: "text" }, drawMrkdwn(message.text, seen))];
  return el(
    "div",
    { class: "content" },
    words,
    message.files.map((file) => drawFile(file, seen.me.id)),
  );
}

function drawFooter(
  message: SeenMessage,
  replies: readonly SeenMessage[],
  { seen, openThread }: MessageSpec,
): HTMLElement | null {
  if (replies.length === 0 || !openThread) return null;
  const authors = [
    ...new Map(replies.map((reply) => [reply.author.id, reply.author])).values(),
  ].slice(0, 4);
  const last = millisecondsOf(replies.at(-1)?.ts ?? message.ts);
  return el(
    "button",
    {
      type: "button",
      class: "replies",
      "data-focus": `replies ${message.ts}`,
      onclick: () => openThread(message.ts),
    },
    authors.map((author) =>
      drawAvatar(
        author.id,
        seen.people.find((person) => person.id === author.id)?.realName ?? author.name,
        author.isBot,
      ),
    ),
    el("b", {}, replies.length === 1 ? "1 reply" : `${replies.length} replies`),
    el("span", {}, `Last reply ${dayOf(last).toLowerCase()} at ${timeOf(last)}`),
  );
}

/** What can be done with a message: shown when the pointer or the focus is on it. */
function drawTools(message: SeenMessage, { seen, do: act, openThread }: MessageSpec): HTMLElement {
  const shortcuts = seen.shortcuts.filter((shortcut) => shortcut.type === "message");
  const more: HTMLElement = el(
    "button",
    {
      type: "button",
      class: "icon-button",
      "aria-label": "More about this message",
      title: "More",
      "aria-haspopup": "menu",
      onclick: () =>
        openMenu(more, "Message", [
          ...(openThread ? [{ label: "Reply in thread", run: () => openThread(message.ts) }] : []),
          ...shortcuts.map((shortcut) => ({
            label: shortcut.name,
            hint: seen.bot.name,
            run: () =>
              act("picksMessageShortcut", { shortcut: shortcut.callbackId, ts: message.ts }),
          })),
          ...(message.author.id === seen.me.id
            ? [{ label: "Delete message", run: () => act("deletesMessage", { ts: message.ts }) }]
            : []),
        ]),
    },
    icon("more"),
  );
  const reply = openThread
    ? el(
        "button",
        {
          type: "button",
          class: "icon-button",
          "aria-label": "Reply in thread",
          title: "Reply in thread",
          onclick: () => openThread(message.ts),
        },
        icon("reply"),
      )
    : null;
  return el("div", { class: "tools" }, reply, more);
}
