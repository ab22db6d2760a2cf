import type { Seen, SeenChannel } from "../../slack/seen.ts";
import { createComposer } from "./composer.ts";
import { drawKeyed, el } from "./dom.ts";
import { icon } from "./icons.ts";
import { createList, keepAtEnd, type Pane, refusalIn } from "./message-list.ts";
import { listMessages } from "./messages.ts";
import type { Do } from "./surface.ts";

/** A channel: its messages and a place to write. */
export function createChannelPane(
  act: Do,
  openThread: (ts: string) => void,
  openSidebar: () => void,
): Pane<[Seen, SeenChannel]> & { focus(): void } {
  const name = el("h2", {});
  const about = el("p", { class: "about" });
  const list = createList("Messages");
  const composer = createComposer(act);
  const menu = el(
    "button",
    {
      type: "button",
      class: "icon-button menu-button",
      "aria-label": "Channels",
      "aria-controls": "sidebar",
      onclick: openSidebar,
    },
    icon("menu"),
  );
  const node = el(
    "main",
    { class: "channel" },
    el("header", { class: "bar" }, menu, el("div", {}, name, about)),
    list,
    composer.node,
  );
  let shown = "";
  return {
    node,
    focus: () => composer.focus(),
    update: (seen, channel) => {
      const key = `${seen.me.id} ${channel.id}`;
      const moved = shown !== key;
      shown = key;
      const title = channel.kind === "direct" ? `@${channel.name}` : `#${channel.name}`;
      name.textContent = title;
      const people = `${channel.memberIds.length} members`;
      about.textContent = channel.botIsMember
        ? people
        : `${people} · ${seen.bot.name} isn't in this channel`;
      const messages = channel.messages.filter((message) => message.threadTs === undefined);
      keepAtEnd(list, moved, () =>
        drawKeyed(
          list,
          messages.length === 0
            ? [empty(seen, title)]
            : listMessages(messages, { seen, channel, do: act, openThread }),
        ),
      );
      composer.update({
        key,
        label: `Message ${title}`,
        channelId: channel.id,
        seen,
        ...refusalIn(seen, channel),
      });
    },
  };
}

function empty(seen: Seen, title: string) {
  const commands = seen.commands.map(({ name }) => name).join(", ");
  return {
    key: "empty",
    signature: title,
    draw: () =>
      el(
        "div",
        { class: "empty" },
        el("h3", {}, `This is ${title}`),
        el(
          "p",
          {},
          commands === "" ? "Nobody has written here yet." : `Type ${commands} or a message below.`,
        ),
      ),
  };
}
