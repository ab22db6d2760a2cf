import type { FormValues, Outcome } from "../actions.ts";
import { chosenValue, clientComplaint, initialValue } from "../blocks/input-state.ts";
import { elementsIn } from "../blocks/walk.ts";
import { closedPayload, submissionPayload } from "../deliver/payloads.ts";
import { type Fields, fieldsOf, textOf } from "../fields.ts";
import { showToast } from "../state/notifications.ts";
import type { View } from "../state/records.ts";
import {
  complaintsAboutView,
  makeView,
  modalsOf,
  mostPushed,
  replaceView,
  topModal,
} from "../state/views.ts";
import { type Act, mustBeActive, nothingSent, outcomeOf } from "./act.ts";
import { isChoosable, isExternal, keep, offeredTo, resolved, suggest } from "./choosing.ts";
import { findElement } from "./find-element.ts";

/** Fills the modal on top and submits it. */
export async function submit(act: Act, values: FormValues = {}): Promise<Outcome> {
  mustBeActive(act);
  const { workspace, person } = act;
  const view = topModal(workspace, person.id);
  if (!view) throw new Error(`${person.name} has no modal open`);
  if (!view.submit)
    throw new Error(`The modal "${textOf(view.title?.["text"])}" has nothing to submit`);
  for (const [key, choice] of Object.entries(values)) await fill(act, key, choice);
  const errors = clientErrors(view);
  view.errors = errors;
  workspace.changed();
  if (Object.keys(errors).length > 0)
    return { acked: false, ackMs: 0, error: "invalid_input", errors };
  const acked = await act.deliveries.deliver(
    "interaction",
    submissionPayload(workspace, person, view),
    true,
  );
  if (!acked.acked) {
    showToast(workspace, person.id, {
      text: "We had some trouble connecting. Try again?",
      error: acked.error ?? "dispatch_failed",
    });
    return outcomeOf(acked);
  }
  const outcome = outcomeOf(acked);
  const refused = followAnswer(act, view, fieldsOf(acked.body));
  if (refused)
    showToast(workspace, person.id, {
      text: "We had some trouble connecting. Try again?",
      error: refused,
    });
  workspace.changed();
  const open = modalsOf(workspace, person.id).find(({ id }) => id === view.id);
  return {
    ...outcome,
    ...(refused ? { error: refused } : {}),
    ...(open && Object.keys(open.errors).length > 0 ? { errors: open.errors } : {}),
  };
}

/** Enters one value. In a select that loads its options, the person types it first and picks what is offered. */
async function fill(act: Act, key: string, choice: FormValues[string] | undefined): Promise<void> {
  const spot = findElement(act, key, { in: "modal" }, isChoosable);
  const wanted = resolved(act.workspace, spot.element, choice ?? null);
  const words =
    typeof wanted === "string" ? [wanted] : Array.isArray(wanted) ? wanted.map(String) : [];
  if (isExternal(spot.element)) {
    const offered = new Set(
      offeredTo(act, spot).flatMap((option) => [option.value, option.text.text]),
    );
    for (const word of words.filter((one) => !offered.has(one))) {
      await suggest(act, key, word, { in: "modal" });
    }
  }
  keep(act, spot, chosenValue(spot.element, wanted, offeredTo(act, spot)));
}

function clientErrors(view: View): Record<string, string> {
  const errors: Record<string, string> = {};
  for (const { block, element, blockId, actionId } of elementsIn(view.blocks)) {
    if (block["type"] !== "input") continue;
    const complaint = clientComplaint(
      block,
      element,
      view.state[blockId]?.[actionId] ?? initialValue(element),
    );
    if (complaint) errors[blockId] = complaint;
  }
  return errors;
}

/** Does what the ack of a submission says. Returns Slack's word when it can't be done. */
function followAnswer(act: Act, submitted: View, answer: Fields): string | undefined {
  const { workspace, person } = act;
  const stack = modalsOf(workspace, person.id);
  // The app may have updated the view while it was being submitted.
  const current = stack.find(({ id }) => id === submitted.id);
  switch (answer["response_action"]) {
    case undefined:
      if (current) stack.splice(stack.indexOf(current), 1);
      return undefined;
    case "clear":
      stack.length = 0;
      return undefined;
    case "errors":
      return current ? showErrors(current, fieldsOf(answer["errors"])) : undefined;
    case "update":
    case "push": {
      const definition = fieldsOf(answer["view"]);
      if (complaintsAboutView(workspace, definition, "modal").length > 0) return "invalid_view";
      if (answer["response_action"] === "update") {
        if (current)
          replaceView(workspace, current, makeView(workspace, definition, person.id, current));
        return undefined;
      }
      if (stack.length >= mostPushed) return "push_limit_reached";
      stack.push(makeView(workspace, definition, person.id, undefined, current));
      return undefined;
    }
    default:
      return "invalid_response_action";
  }
}

/** Errors stand under input blocks only; any other block id makes the whole answer invalid. */
function showErrors(view: View, errors: Fields): string | undefined {
  const inputs = new Set(
    view.blocks.filter((block) => block.type === "input").map((block) => block.block_id),
  );
  const entries = Object.entries(errors).map(([blockId, text]) => [blockId, textOf(text)] as const);
  if (entries.length === 0 || entries.some(([blockId]) => !inputs.has(blockId)))
    return "invalid_errors";
  view.errors = Object.fromEntries(entries);
  return undefined;
}

/** Closes the modal on top, or the whole stack; the app hears of the views that asked for it. */
export async function close(act: Act, { all = false }: { all?: boolean } = {}): Promise<Outcome> {
  mustBeActive(act);
  const { workspace, person, deliveries } = act;
  const stack = modalsOf(workspace, person.id);
  const top = stack.at(-1);
  if (!top) throw new Error(`${person.name} has no modal open`);
  const cleared = all || top.clearOnClose;
  const closed = cleared ? stack.splice(0).toReversed() : stack.splice(-1);
  workspace.changed();
  let last = nothingSent;
  for (const view of closed.filter(({ notifyOnClose }) => notifyOnClose)) {
    last = outcomeOf(
      await deliveries.deliver(
        "interaction",
        closedPayload(workspace, person, view, cleared),
        false,
      ),
    );
  }
  return last;
}
