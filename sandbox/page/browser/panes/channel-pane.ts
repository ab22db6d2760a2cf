import type { Seen, SeenChannel } from "../../../slack/seen.ts";
import { el } from "../dom/dom.ts";
import type { Do } from "../elements/surface.ts";
import { type BarSpec, createBar } from "./bar.ts";
import { createComposer } from "./composer.ts";
import { createList, listMessages, type Pane, refusalIn } from "./message-list.ts";

/** A channel: its messages and a place to write. */
export function createChannelPane(
  act: Do,
  openThread: (ts: string) => void,
  barSpec: BarSpec,
): Pane<[Seen, SeenChannel]> & { focus(): void; write(text: string): void } {
  const bar = createBar(barSpec);
  const list = createList("Messages");
  const composer = createComposer(act, () => list.toEnd());
  const node = el("main", { class: "channel" }, bar.node, list.node, composer.node);
  let shown = "";
  return {
    node,
    focus: () => composer.focus(),
    write: (text) => composer.write(text),
    update: (seen, channel) => {
      const key = `${seen.me.id} ${channel.id}`;
      const moved = shown !== key;
      shown = key;
      const title = channel.kind === "direct" ? `@${channel.name}` : `#${channel.name}`;
      const people = `${channel.memberIds.length} members`;
      bar.say(
        title,
        channel.botIsMember ? people : `${people} · ${seen.bot.name} isn't in this channel`,
      );
      const messages = channel.messages.filter((message) => message.threadTs === undefined);
      list.show(
        messages.length === 0
          ? [empty(seen, title)]
          : listMessages(messages, { seen, channel, do: act, openThread }),
        messages,
        seen.me.id,
        moved,
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
        el("h2", {}, `This is ${title}`),
        el("p", {}, commands === "" ? "No messages yet." : `Type ${commands} or a message below.`),
      ),
  };
}
