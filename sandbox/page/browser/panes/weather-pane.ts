import type { Forecast, SeenVm, StrangersDo, Switch, Try } from "../../around.ts";
import { drawKeyed, el, type Keyed, newId, icon } from "../dom/dom.ts";
import { openMenu } from "../dom/menu.ts";
import { showForecast } from "./bar.ts";
import type { Pane } from "./message-list.ts";

export interface WeatherSpec {
  turn: (what: object) => Promise<void>;
  write: (words: Pick<Try, "as" | "channel" | "text">) => void;
  enter: (handle: string, channel: string) => void;
  close: () => void;
}

/** What can be broken, each with what to try and what should hold, and the VMs as they really are. */
export function createWeatherPane(spec: WeatherSpec): Pane<[Forecast | undefined, boolean]> {
  const switches = el("div", { class: "switches" });
  const vms = el("tbody", {});
  const calm = el(
    "button",
    { type: "button", class: "button", onclick: () => turnAllOff() },
    "Everything back to normal",
  );
  const cross = el(
    "button",
    {
      type: "button",
      class: "icon-button cross",
      "aria-label": "Close weather",
      onclick: spec.close,
    },
    icon("close"),
  );
  const strangersHint = el("p", { class: "about-strangers" });
  const head = el("th", {}, el("span", { class: "unseen" }, "Someone else"));
  const node = el(
    "aside",
    { class: "weather", "aria-label": "Weather", hidden: true },
    el(
      "header",
      { class: "bar" },
      el(
        "div",
        {},
        el("h2", {}, "Weather"),
        el("p", { class: "about" }, "Break it, and see what holds"),
      ),
      cross,
    ),
    el(
      "div",
      { class: "weather-body", role: "group", "aria-label": "Weather", tabindex: 0 },
      el("h3", {}, "The VMs as they really are"),
      el(
        "table",
        { class: "truth" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ["VM", "Status", "Done to it"].map((words) => el("th", { scope: "col" }, words)),
            head,
          ),
        ),
        vms,
      ),
      strangersHint,
      el("h3", {}, "What can be broken"),
      switches,
      calm,
    ),
  );
  let now: Forecast | undefined;
  const turnAllOff = () =>
    Promise.all(
      (now?.switches ?? [])
        .filter(({ on }) => on)
        .map(({ id }) => spec.turn({ switch: id, on: false })),
    );
  return {
    node,
    update: (forecast, open) => {
      now = forecast;
      const broken = forecast?.switches.filter(({ on }) => on).length;
      showForecast(broken);
      calm.disabled = broken === 0;
      node.hidden = !forecast || !open;
      if (node.hidden || !forecast) return;
      strangersHint.textContent = forecast.aboutStrangers;
      drawKeyed(
        switches,
        forecast.switches.map((one) => listSwitch(one, spec)),
      );
      drawKeyed(
        vms,
        forecast.vms.map((vm) => listVm(vm, spec)),
      );
    },
  };
}

function listSwitch(one: Switch, { turn, write, enter }: WeatherSpec): Keyed {
  const { tries, as, channel } = one;
  const draw = () => {
    const [id, leverId] = [newId(), newId()];
    const lever: HTMLElement = el("button", {
      type: "button",
      role: "switch",
      class: "switch",
      id: leverId,
      "aria-checked": String(one.on),
      "aria-labelledby": id,
      "data-focus": `switch ${one.id}`,
      onclick: async () => {
        lever.setAttribute("aria-busy", "true");
        await turn({ switch: one.id, on: !one.on });
        lever.removeAttribute("aria-busy");
      },
    });
    return el(
      "div",
      { class: one.on ? "weather-line on" : "weather-line" },
      lever,
      el(
        "div",
        {},
        el("label", { id, for: leverId }, el("b", {}, one.label)),
        "button" in tries
          ? el("p", {}, "Press ", drawPress(tries.button, { as, channel }, enter), " ", one.holds)
          : el("p", {}, "Try ", drawTry({ ...tries, as, channel }, write), " ", one.holds),
      ),
    );
  };
  return { key: one.id, signature: JSON.stringify(one), draw };
}

/** A command as a button: it is written where it belongs, and sent by the person. */
export function drawTry(
  words: Pick<Try, "as" | "channel" | "text">,
  write: WeatherSpec["write"],
): HTMLElement {
  return el(
    "button",
    {
      type: "button",
      class: "try",
      title: `Write it as ${words.as} in #${words.channel}`,
      onclick: () => write(words),
    },
    el("code", {}, words.text),
  );
}

/** The way to a button of a message: into its channel, as the person who may press it. */
const drawPress = (
  label: string,
  { as, channel }: Pick<Try, "as" | "channel">,
  enter: WeatherSpec["enter"],
): HTMLElement =>
  el(
    "button",
    {
      type: "button",
      class: "try",
      title: `Go to #${channel} as ${as}`,
      onclick: () => enter(as, channel),
    },
    el("b", {}, label),
    ` in #${channel}`,
  );

const strangers: Record<StrangersDo, string> = {
  stop: "Stop it",
  reboot: "Reboot it",
  replace: "Put another VM under its name",
};

function listVm(vm: SeenVm, { turn }: WeatherSpec): Keyed {
  const draw = () => {
    const more: HTMLElement = el(
      "button",
      {
        type: "button",
        class: "icon-button",
        "aria-label": `Someone else changes ${vm.name} in ${vm.project}`,
        title: "Someone else changes it, behind the app's back",
        "aria-haspopup": "menu",
        "data-focus": `vm ${vm.id}`,
        onclick: () =>
          openMenu(
            more,
            "As someone else",
            Object.entries(strangers).map(([does, label]) => ({
              label,
              hint: "In the service's own console",
              run: () => turn({ vm: vm.id, does }),
            })),
          ),
      },
      icon("more"),
    );
    return el(
      "tr",
      {},
      el("td", {}, el("b", {}, vm.name), el("small", {}, ` ${vm.project}`)),
      el("td", { class: `status status-${vm.status.toLowerCase()}` }, vm.status),
      el("td", {}, vm.done),
      el("td", {}, more),
    );
  };
  return { key: vm.id, signature: JSON.stringify(vm), draw };
}
