import type { Guide, Try } from "../../around.ts";
import type { Seen } from "../../../slack/seen.ts";
import { el } from "../dom/dom.ts";
import { type BarSpec, createBar } from "./bar.ts";
import type { Pane } from "./message-list.ts";
import { describePerson, drawAvatar } from "./people.ts";
import { drawTry } from "./weather-pane.ts";

export interface GuideSpec extends BarSpec {
  be: (handle: string) => void;
  enter: (handle: string, channel: string) => void;
  write: (words: Pick<Try, "as" | "channel" | "text">) => void;
}

/** The first screen: who the people are, three things to try, and one story of two minutes. */
export function createGuidePane(spec: GuideSpec): Pane<[Seen, Guide | undefined]> {
  const bar = createBar(spec);
  const body = el("div", {
    class: "guide-body",
    role: "region",
    "aria-label": "Guide",
    tabindex: 0,
  });
  const node = el("main", { class: "guide", hidden: true }, bar.node, body);
  let drawn = "";
  return {
    node,
    update: (seen, guide) => {
      const signature = JSON.stringify([guide, seen.me.id]);
      if (!guide || signature === drawn) return;
      drawn = signature;
      bar.say("Start here", guide.subtitle);
      body.replaceChildren(
        section(
          "Three things to try",
          el("p", { class: "about" }, "A button writes its command; Enter or Send runs it."),
          drawTries(seen, guide, spec),
        ),
        section(
          "Who is who",
          el("p", { class: "about" }, guide.about),
          drawPeople(seen, guide, spec),
        ),
        section("One story, two minutes", drawStory(seen, guide, spec)),
      );
    },
  };
}

function section(title: string, ...content: HTMLElement[]): HTMLElement {
  return el("section", {}, el("h2", {}, title), ...content);
}

function nameOf(seen: Seen, handle: string): string {
  const name = seen.people.find(({ name: known }) => known === handle)?.realName ?? handle;
  return name.split(" ")[0] ?? name;
}

function drawTries(seen: Seen, { tries }: Guide, { write }: GuideSpec): HTMLElement {
  return el(
    "ul",
    { class: "tries" },
    tries.map((one) =>
      el(
        "li",
        {},
        el("p", {}, one.why),
        el("p", {}, drawTry(one, write), el("small", {}, ` as ${nameOf(seen, one.as)}`)),
      ),
    ),
  );
}

function drawPeople(seen: Seen, { people }: Guide, { be }: GuideSpec): HTMLElement {
  return el(
    "ul",
    { class: "cast" },
    people.flatMap(({ who, may }) => {
      const person = seen.people.find(({ name }) => name === who);
      if (!person) return [];
      const isMe = person.id === seen.me.id;
      return el(
        "li",
        {},
        drawAvatar(person.id, person.realName, false),
        el(
          "p",
          {},
          el("b", {}, nameOf(seen, who)),
          ` ${may} `,
          el("small", {}, describePerson(person, seen).replace(/^Member$/, "")),
        ),
        isMe
          ? el("span", { class: "me" }, "You")
          : el(
              "button",
              {
                type: "button",
                class: "button",
                "aria-label": `Switch to ${nameOf(seen, who)}`,
                onclick: () => be(who),
              },
              "Switch",
            ),
      );
    }),
  );
}

function drawStory(seen: Seen, { story }: Guide, spec: GuideSpec): HTMLElement {
  const press = (words: string, run: () => void) =>
    el("button", { type: "button", class: "button", onclick: run }, words);
  return el(
    "ol",
    { class: "story" },
    story.map((step) =>
      el(
        "li",
        {},
        el("p", {}, step.why),
        "text" in step
          ? drawTry(step, spec.write)
          : "be" in step
            ? press(`Switch to ${nameOf(seen, step.be)}`, () => spec.enter(step.be, step.channel))
            : press("Open the weather", spec.openWeather),
      ),
    ),
  );
}
