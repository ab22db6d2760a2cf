import type { Seen, SeenChannel } from "../../../slack/seen.ts";
import { drawKeyed, el, type Keyed, icon } from "../dom/dom.ts";
import { openMenu } from "../dom/menu.ts";
import { describePerson, drawAvatar, humansIn } from "./people.ts";
import { channelAt, type Place, unreadIn } from "./place.ts";

export interface Sidebar {
  node: HTMLElement;
  update(seen: Seen, place: Place, hasGuide: boolean): void;
}

/** The workspace, who one is, and where one can go. */
export function createSidebar(go: (place: Place) => void): Sidebar {
  let seen: Seen | undefined;
  const team = el("p", { class: "team-name" });
  const me = el("button", {
    type: "button",
    class: "whoami",
    title: "Switch to someone else",
    "aria-haspopup": "menu",
    "data-focus": "me",
    onclick: () => switchPerson(),
  });
  const channels = el("nav", { "aria-label": "Channels" });
  const node = el(
    "aside",
    { class: "sidebar", id: "sidebar", "aria-label": "Workspace" },
    el("div", { class: "team" }, team, el("p", {}, "A sandbox: nothing here is real")),
    me,
    channels,
  );

  const switchPerson = () => {
    if (!seen) return;
    const { people, me: now } = seen;
    openMenu(
      me,
      "You are",
      humansIn(people).map((person) => ({
        label: person.realName,
        hint: describePerson(person, seen ?? { groups: [] }),
        picture: drawAvatar(person.id, person.realName, false),
        checked: person.id === now.id,
        run: () => go({ as: person.name }),
      })),
    );
  };
  return {
    node,
    update: (next, place, hasGuide) => {
      seen = next;
      team.textContent = next.team.name;
      me.replaceChildren(
        drawAvatar(next.me.id, next.me.realName, false),
        el(
          "span",
          {},
          el("small", {}, "You are"),
          el("b", {}, next.me.realName),
          el("small", {}, describePerson(next.me, next)),
        ),
        icon("down"),
      );
      drawKeyed(channels, [
        ...(hasGuide ? [drawGuide(place.guide === true, go)] : []),
        ...listPlaces(next, place, go),
      ]);
    },
  };
}

function heading(words: string): Keyed {
  return { key: words, signature: "", draw: () => el("h2", {}, words) };
}

function listPlaces(seen: Seen, place: Place, go: (place: Place) => void): Keyed[] {
  const current = place.home || place.guide ? undefined : channelAt(place, seen)?.id;
  const line = (channel: SeenChannel): Keyed =>
    drawChannel(seen, channel, channel.id === current, go);
  const direct = seen.channels.filter((channel) => channel.kind === "direct");
  return [
    heading("Channels"),
    ...seen.channels.filter((channel) => channel.kind !== "direct").map(line),
    ...(direct.length > 0 ? [heading("Direct messages"), ...direct.map(line)] : []),
    heading("App"),
    {
      key: "home",
      signature: String(place.home === true),
      draw: () =>
        el(
          "a",
          {
            href: "#home",
            class: "place",
            "aria-current": place.home ? "page" : undefined,
            "data-focus": "home",
            onclick: (event: Event) => followed(event, () => go({ home: true })),
          },
          icon("home"),
          el("span", {}, `${seen.bot.name} Home`),
        ),
    },
  ];
}

function drawGuide(isHere: boolean, go: (place: Place) => void): Keyed {
  return {
    key: "guide",
    signature: String(isHere),
    draw: () =>
      el(
        "a",
        {
          href: "#guide",
          class: "place",
          "aria-current": isHere ? "page" : undefined,
          "data-focus": "guide",
          onclick: (event: Event) => followed(event, () => go({ guide: true })),
        },
        icon("lamp"),
        el("span", {}, "Start here"),
      ),
  };
}

function drawChannel(
  seen: Seen,
  channel: SeenChannel,
  current: boolean,
  go: (place: Place) => void,
): Keyed {
  const { any, mentions } = current ? { any: false, mentions: 0 } : unreadIn(seen, channel);
  const classes = ["place", any && "unread", !channel.member && "outside"]
    .filter(Boolean)
    .join(" ");
  const sign =
    channel.kind === "direct"
      ? el("span", { class: "dot-place" })
      : icon(channel.kind === "private" ? "lock" : "channel");
  const news =
    mentions > 0
      ? el("span", { class: "mentions", "aria-label": `${mentions} mentions` }, mentions)
      : any
        ? el("span", { class: "dot", role: "img", "aria-label": "unread" })
        : null;
  return {
    key: channel.id,
    signature: JSON.stringify([channel.name, current, any, mentions, channel.member]),
    draw: () =>
      el(
        "a",
        {
          href: `#channel=${encodeURIComponent(channel.name)}`,
          class: classes,
          "aria-current": current ? "page" : undefined,
          "data-focus": channel.id,
          onclick: (event: Event) => followed(event, () => go({ channel: channel.id })),
        },
        sign,
        el("span", {}, channel.name),
        news,
      ),
  };
}

function followed(event: Event, then: () => void): void {
  event.preventDefault();
  then();
}
