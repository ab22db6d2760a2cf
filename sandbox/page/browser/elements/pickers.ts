import { textOf } from "../../../slack/fields.ts";
import { el } from "../dom/dom.ts";
import { choose, type Control, focusKeyOf, valueOf } from "./surface.ts";

const kinds: Record<string, { type: string; initial: string; label: string }> = {
  datepicker: { type: "date", initial: "initial_date", label: "Date" },
  timepicker: { type: "time", initial: "initial_time", label: "Time" },
  datetimepicker: { type: "datetime-local", initial: "initial_date_time", label: "Date and time" },
};

/** Dates and times: the browser's own pickers. */
export function drawPicker(control: Control): HTMLElement {
  const type = textOf(control.element["type"]);
  const kind = kinds[type] ?? { type: "date", initial: "initial_date", label: "Date" };
  const before = shownIn(control, kind.initial);
  const input = el("input", {
    type: kind.type,
    class: "picker",
    value: before,
    "aria-label": kind.label,
    "data-control": true,
    "data-focus": focusKeyOf(control),
    onchange: async () => {
      const seconds = Math.floor(new Date(input.value).getTime() / 1000);
      const done = await choose(
        control,
        input.value === "" ? null : type === "datetimepicker" ? seconds : input.value,
      );
      if (!done) input.value = before;
    },
  });
  return input;
}

function shownIn(control: Control, initial: string): string {
  const state = valueOf(control);
  const value = state
    ? (state.selected_date ?? state.selected_time ?? state.selected_date_time)
    : control.element[initial];
  if (typeof value === "number") return localTime(value);
  return typeof value === "string" ? value : "";
}

/** As `<input type="datetime-local">` wants it: local, to the minute. */
function localTime(seconds: number): string {
  const at = new Date(seconds * 1000);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
