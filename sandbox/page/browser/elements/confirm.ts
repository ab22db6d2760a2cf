import { isFields, wordsOf } from "../../../slack/fields.ts";
import { el, newId } from "../dom/dom.ts";
import { drawText, type Names } from "../text/draw-text.ts";

/** Slack's confirm dialog: true when there is none, or when the person said yes. */
export function askConfirm(confirm: unknown, names: Names): Promise<boolean> {
  if (!isFields(confirm)) return Promise.resolve(true);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const titleId = newId();
  const textId = newId();
  const yes = el(
    "button",
    {
      type: "submit",
      class: confirm["style"] === "danger" ? "button danger" : "button primary",
      value: "yes",
      autofocus: true,
    },
    wordsOf(confirm["confirm"]) || "Yes",
  );
  const dialog: HTMLDialogElement = el(
    "dialog",
    {
      class: "confirm",
      "aria-labelledby": titleId,
      "aria-describedby": textId,
      onclose: () => finish(dialog.returnValue === "yes"),
    },
    el(
      "form",
      { method: "dialog" },
      el("h2", { id: titleId }, wordsOf(confirm["title"]) || "Are you sure?"),
      el("div", { id: textId, class: "confirm-text" }, drawText(confirm["text"], names)),
      el(
        "div",
        { class: "buttons" },
        el(
          "button",
          { type: "submit", class: "button", value: "no" },
          wordsOf(confirm["deny"]) || "Cancel",
        ),
        yes,
      ),
    ),
  );
  const before = document.activeElement;
  const finish = (said: boolean) => {
    dialog.remove();
    if (before instanceof HTMLElement && before.isConnected) before.focus();
    resolve(said);
  };
  document.body.append(dialog);
  dialog.showModal();
  return promise;
}
