import type { Seen } from "../../slack/seen.ts";
import { drawBlock } from "./blocks.ts";
import { drawKeyed, el } from "./dom.ts";
import { textOf } from "./fields.ts";
import { icon } from "./icons.ts";
import type { Pane } from "./message-list.ts";
import type { Do, Surface } from "./surface.ts";

/** The app's Home tab. */
export function createHomePane(act: Do, openSidebar: () => void): Pane<[Seen]> {
  const title = el("h2", {});
  const body = el("div", { class: "home-body" });
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
    { class: "home", hidden: true },
    el("header", { class: "bar" }, menu, el("div", {}, title, el("p", { class: "about" }, "Home"))),
    body,
  );
  return {
    node,
    update: (seen) => {
      title.textContent = seen.bot.name;
      const { home } = seen;
      if (!home)
        return body.replaceChildren(
          el("p", { class: "empty" }, `${seen.bot.name} hasn't put anything here yet.`),
        );
      const surface: Surface = {
        seen,
        where: "home",
        id: home.id,
        state: home.state,
        errors: home.errors,
        do: act,
      };
      return drawKeyed(
        body,
        home.blocks.map((block, index) => {
          const id = textOf(block.block_id) || String(index);
          return {
            key: `${home.id} ${id}`,
            signature: JSON.stringify([block, home.state[id]]),
            draw: () => drawBlock(block, surface),
          };
        }),
      );
    },
  };
}
