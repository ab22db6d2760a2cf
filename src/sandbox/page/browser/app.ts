import type { Seen } from "../../slack/seen.ts";
import { connect } from "./connection.ts";
import { el } from "./dom.ts";
import { createModals } from "./modal.ts";
import { createChannelPane } from "./channel-pane.ts";
import { createHomePane } from "./home-pane.ts";
import { createThreadPane } from "./thread-pane.ts";
import { channelAt, type Place, readPlace, writePlace } from "./place.ts";
import { createSidebar } from "./sidebar.ts";
import type { Do } from "./surface.ts";
import { createToasts } from "./toasts.ts";
import { markRead } from "./unread.ts";

/** Starts the page: what is seen comes from the server, where one is stands in the address, all else follows. */
function start(): void {
  let seen: Seen | undefined;
  let place = readPlace(location.hash);

  const toasts = createToasts();
  const lost = el(
    "p",
    { class: "lost", role: "alert", hidden: true },
    "The sandbox isn't running any more.",
  );
  const connection = connect({
    show: (next) => {
      seen = next;
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
    place = someoneElse
      ? { ...place, ...to }
      : { ...(place.as === undefined ? {} : { as: place.as }), ...to };
    location.hash = writePlace(place);
    if (someoneElse) connection.be(place.as);
    if (place.home) void act("opensHome", {});
    draw();
  };
  const here = (): Place => (seen ? { channel: channelAt(place, seen)?.id ?? "" } : {});
  const openThread = (ts: string) => {
    go({ ...here(), thread: ts });
    thread.focus();
  };
  const openSidebar = () => shell.classList.toggle("sidebar-open");

  const sidebar = createSidebar(go);
  const channel = createChannelPane(act, openThread, openSidebar);
  const thread = createThreadPane(act, () => {
    go(here());
    channel.focus();
  });
  const home = createHomePane(act, openSidebar);
  const veil: HTMLElement = el("div", {
    class: "veil",
    onclick: () => shell.classList.remove("sidebar-open"),
  });
  const shell: HTMLElement = el(
    "div",
    { class: "shell" },
    lost,
    sidebar.node,
    veil,
    channel.node,
    home.node,
    thread.node,
  );
  document.body.append(shell);
  const modals = createModals(act, () => connection.settled());

  const draw = () => {
    if (!seen) return;
    const current = channelAt(place, seen);
    document.title = `${place.home || !current ? seen.bot.name : current.name} · ${seen.team.name}`;
    if (current && !place.home) markRead(seen, current);
    sidebar.update(seen, place);
    home.node.hidden = !place.home;
    channel.node.hidden = place.home === true;
    home.update(seen);
    if (current) {
      channel.update(seen, current);
      thread.update(seen, current, place.home ? undefined : place.thread);
    }
    shell.classList.toggle("with-thread", !thread.node.hidden);
    modals.update(seen);
    toasts.update(seen);
  };
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
    draw();
  });
  connection.be(place.as);
  if (place.home) void act("opensHome", {});
  if (matchMedia("(min-width: 700px)").matches) channel.focus();
}

start();
