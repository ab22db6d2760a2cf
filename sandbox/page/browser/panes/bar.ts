import { el, icon } from "../dom/dom.ts";

/** What stands over every pane: the way to the channels on a phone, and the weather where there is one. */
export interface BarSpec {
  openSidebar: () => void;
  openWeather: () => void;
}

export interface Bar {
  node: HTMLElement;
  say(title: string, about: string): void;
}

/** Told of by `showForecast`, wherever one stands. */
const badges = new Set<(on: number | undefined) => void>();

/** How many things are broken at the moment; undefined where no weather can be made. */
export function showForecast(on: number | undefined): void {
  for (const show of badges) show(on);
}

export function createBar({ openSidebar, openWeather }: BarSpec): Bar {
  const name = el("h1", {});
  const about = el("p", { class: "about" });
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
  const count = el("span", { class: "count", hidden: true });
  const weather = el(
    "button",
    { type: "button", class: "button weather-button", hidden: true, onclick: openWeather },
    icon("cloud"),
    "Weather",
    count,
  );
  badges.add((on) => {
    weather.hidden = on === undefined;
    count.hidden = !on;
    count.textContent = String(on ?? 0);
    count.setAttribute("aria-label", `${on ?? 0} on`);
  });
  return {
    node: el("header", { class: "bar" }, menu, el("div", {}, name, about), weather),
    say: (title, words) => {
      name.textContent = title;
      about.textContent = words;
    },
  };
}
