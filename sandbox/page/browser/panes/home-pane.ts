import { textOf } from "../../../slack/fields.ts";
import type { Seen } from "../../../slack/seen.ts";
import { drawBlock } from "../blocks/blocks.ts";
import { drawKeyed, el } from "../dom/dom.ts";
import type { Do, Surface } from "../elements/surface.ts";
import { type BarSpec, createBar } from "./bar.ts";
import type { Pane } from "./message-list.ts";

/** The app's Home tab. */
export function createHomePane(act: Do, barSpec: BarSpec): Pane<[Seen]> {
  const bar = createBar(barSpec);
  const body = el("div", { class: "home-body", role: "region", "aria-label": "Home", tabindex: 0 });
  const node = el("main", { class: "home", hidden: true }, bar.node, body);
  return {
    node,
    update: (seen) => {
      bar.say(seen.bot.name, "Home");
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
