import type { Seen, SeenChannel } from "../../slack/seen.ts";
import type { Around, Try } from "../around.ts";
import { el } from "./dom/dom.ts";
import type { Do } from "./elements/surface.ts";
import { createChannelPane } from "./panes/channel-pane.ts";
import { connect } from "./panes/connection.ts";
import { createGuidePane, type GuideSpec } from "./panes/guide-pane.ts";
import { createHomePane } from "./panes/home-pane.ts";
import { createModals } from "./panes/modal.ts";
import { createPhones } from "./panes/phones.ts";
import { channelAt, type Place, readPlace, writePlace, markRead } from "./panes/place.ts";
import { createSidebar } from "./panes/sidebar.ts";
import { createThreadPane } from "./panes/thread-pane.ts";
import { createToasts } from "./panes/toasts.ts";
import { createWeatherPane } from "./panes/weather-pane.ts";

/** Starts the page: what is seen comes from the server, where one is stands in the address, all else follows. */
function start(): void {
  let seen: Seen | undefined;
  let around: Around | undefined;
  let place = readPlace(location.hash);
  /** Words to be put into a composer as soon as their person is in their channel. */
  let toWrite: Pick<Try, "as" | "channel" | "text"> | undefined;

  const toasts = createToasts();
  const lost = el("p", { class: "lost", role: "alert", hidden: true }, "The sandbox has stopped.");
  const connection = connect({
    show: (next) => {
      seen = next;
      draw();
    },
    around: (next) => {
      // Whoever comes without an address begins at the beginning
      if (!around && next.guide && place.channel === undefined && !place.home)
        place = { ...place, guide: true };
      around = next;
      draw();
    },
    complain: (text) => toasts.say(text),
    lost: (is) => {
      lost.hidden = !is;
    },
  });
  const act: Do = (action, words) => connection.do(action, words);

  const go = (to: Place) => {
    shell.classList.remove("sidebar-open");
    const someoneElse = to.as !== undefined && to.as !== place.as;
    // The same channel as someone else; its thread stays open too.
    const { as, weather } = place;
    place = someoneElse
      ? { ...place, ...to }
      : { ...(as === undefined ? {} : { as }), ...(weather ? { weather } : {}), ...to };
    location.hash = writePlace(place);
    if (someoneElse) connection.be(place.as);
    tellOfHome();
    draw();
  };
  /** The app learns only from this that its Home is looked at, however one came there. */
  const tellOfHome = () => {
    if (place.home) void act("opensHome", {});
  };
  const enter = (as: string, name: string) => go({ as, channel: name, guide: false, home: false });
  const here = (): Place => (seen ? { channel: channelAt(place, seen)?.id ?? "" } : {});
  const openThread = (ts: string) => {
    go({ ...here(), thread: ts });
    thread.focus();
  };
  const bar = {
    openSidebar: () => shell.classList.toggle("sidebar-open"),
    openWeather: () => showWeather(place.weather !== true),
  };
  const showWeather = (weather: boolean) => {
    place = { ...place, weather };
    location.hash = writePlace(place);
    draw();
  };
  // On a phone the panel lies over the channel
  const leaveWeather: GuideSpec["enter"] = (as, name) => {
    if (matchMedia("(max-width: 820px)").matches) place = { ...place, weather: false };
    enter(as, name);
  };
  const write: GuideSpec["write"] = (words) => {
    toWrite = words;
    leaveWeather(words.as, words.channel);
  };

  const sidebar = createSidebar(go);
  const channel = createChannelPane(act, openThread, bar);
  const thread = createThreadPane(act, () => {
    go(here());
    channel.focus();
  });
  const home = createHomePane(act, bar);
  const guide = createGuidePane({ ...bar, be: (as) => go({ as }), enter, write });
  const weather = createWeatherPane({
    turn: connection.turn,
    write,
    enter: leaveWeather,
    close: () => showWeather(false),
  });
  const phones = createPhones((as, channelId) => enter(as, channelId));
  const veil: HTMLElement = el("div", {
    class: "veil",
    onclick: () => shell.classList.remove("sidebar-open"),
  });
  const shell: HTMLElement = el(
    "div",
    { class: "shell" },
    lost,
    el("div", { class: "side" }, sidebar.node, phones.node),
    veil,
    guide.node,
    channel.node,
    home.node,
    thread.node,
    weather.node,
  );
  document.body.append(shell);
  const modals = createModals(act, () => connection.settled());

  const draw = () => {
    if (!seen || !around) return;
    const current = channelAt(place, seen);
    const isGuide = place.guide === true && around.guide !== undefined;
    const inChannel = !place.home && !isGuide;
    const title = isGuide ? "Start here" : place.home || !current ? seen.bot.name : current.name;
    document.title = `${title} · ${seen.team.name}`;
    if (current && inChannel) markRead(seen, current);
    sidebar.update(seen, { ...place, guide: isGuide }, around.guide !== undefined);
    guide.node.hidden = !isGuide;
    home.node.hidden = isGuide || !place.home;
    channel.node.hidden = !inChannel;
    guide.update(seen, around.guide);
    home.update(seen);
    if (current) {
      channel.update(seen, current);
      thread.update(seen, current, inChannel ? place.thread : undefined);
      if (inChannel) writeFor(seen, current);
    }
    weather.update(around.weather, place.weather === true);
    phones.update(seen, around.phones, inChannel ? current?.id : undefined);
    shell.classList.toggle("with-thread", !thread.node.hidden);
    shell.classList.toggle("with-weather", !weather.node.hidden);
    modals.update(seen);
    toasts.update(seen);
  };
  const writeFor = ({ me }: Seen, { name }: SeenChannel) => {
    if (toWrite?.as !== me.name || toWrite.channel !== name) return;
    const { text } = toWrite;
    toWrite = undefined;
    channel.write(text);
  };
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    if (document.querySelector("dialog[open], :popover-open")) return;
    if (shell.classList.contains("sidebar-open")) shell.classList.remove("sidebar-open");
    else if (!thread.node.hidden) {
      go(here());
      channel.focus();
    } else if (place.weather) showWeather(false);
  });
  document.addEventListener("click", (event) => {
    const mention =
      event.target instanceof Element ? event.target.closest<HTMLElement>("[data-channel]") : null;
    const id = mention?.dataset["channel"];
    if (id === undefined) return;
    event.preventDefault();
    go({ channel: id });
  });
  addEventListener("hashchange", () => {
    const next = readPlace(location.hash);
    if (writePlace(next) === writePlace(place)) return;
    const someoneElse = next.as !== place.as;
    place = next;
    if (someoneElse) connection.be(place.as);
    tellOfHome();
    draw();
  });
  connection.be(place.as);
  tellOfHome();
  if (matchMedia("(min-width: 700px)").matches) channel.focus();
}

start();
