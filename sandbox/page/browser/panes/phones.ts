import type { Buzz } from "../../around.ts";
import type { Seen } from "../../../slack/seen.ts";
import { drawKeyed, el, type Keyed, icon } from "../dom/dom.ts";
import { drawMrkdwn } from "../text/draw-text.ts";
import { timeOf } from "../text/time.ts";
import { drawAvatar } from "./people.ts";

export interface Phones {
  node: HTMLElement;
  update(seen: Seen, buzzes: readonly Buzz[], channelId: string | undefined): void;
}

/** As much as a locked phone shows. */
const mostLetters = 150;
const mostShown = 2;

/** Notifications as they lie on locked phones, whosever: one press becomes that person, where it happened. */
export function createPhones(open: (handle: string, channel: string) => void): Phones {
  const node = el("div", { class: "phones", role: "region", "aria-label": "Phones" });
  const gone = new Set<string>();
  const began = Date.now();
  return {
    node,
    update: (seen, buzzes, channelId) => {
      for (const buzz of buzzes) {
        // Who looks at the channel has read it
        if (buzz.userId === seen.me.id && buzz.channelId === channelId) gone.add(keyOf(buzz));
      }
      const lying = buzzes.filter((buzz) => buzz.at >= began && !gone.has(keyOf(buzz)));
      const drop = (buzz: Buzz) => {
        gone.add(keyOf(buzz));
        node.querySelector(`[data-buzz="${CSS.escape(keyOf(buzz))}"]`)?.remove();
      };
      drawKeyed(
        node,
        lying.slice(-mostShown).map((buzz) => listBuzz(seen, buzz, open, drop)),
      );
    },
  };
}

const keyOf = ({ userId, channelId, ts }: Buzz) => `${userId} ${channelId} ${ts}`;

function listBuzz(
  seen: Seen,
  buzz: Buzz,
  open: (handle: string, channel: string) => void,
  drop: (buzz: Buzz) => void,
): Keyed {
  const person = seen.people.find(({ id }) => id === buzz.userId);
  const name = person?.realName.split(" ")[0] ?? buzz.userId;
  const whole = el("span", {}, drawMrkdwn(buzz.text, seen)).textContent.replaceAll(/\s+/g, " ");
  const words = whole.length > mostLetters ? `${whole.slice(0, mostLetters - 1)}…` : whole;
  return {
    key: keyOf(buzz),
    signature: words,
    draw: () =>
      el(
        "div",
        { class: "buzz", "data-buzz": keyOf(buzz) },
        el(
          "button",
          {
            type: "button",
            class: "buzz-open",
            onclick: () => person && open(person.name, buzz.channelId),
          },
          el(
            "span",
            { class: "buzz-head" },
            drawAvatar(seen.bot.userId, seen.bot.name, true),
            el("b", {}, `${name}'s phone`),
            el("time", {}, timeOf(buzz.at)),
          ),
          el("span", { class: "buzz-text" }, words),
          el("span", { class: "buzz-be" }, `Open it as ${name}`),
        ),
        el(
          "button",
          {
            type: "button",
            class: "icon-button",
            "aria-label": `Dismiss on ${name}'s phone`,
            onclick: () => drop(buzz),
          },
          icon("close"),
        ),
      ),
  };
}
