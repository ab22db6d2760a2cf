import type { Outcome, Where } from "../actions.ts";
import { stateOf } from "../blocks/input-state.ts";
import { blockActionsPayload } from "../deliver/payloads.ts";
import { type Fields, fieldsOf, textOf, wordsOf } from "../fields.ts";
import type { SeenState } from "../seen.ts";
import { showToast } from "../state/notifications.ts";
import { messageStateKey } from "../state/seen-by.ts";
import { type Act, mustBeActive, nothingSent, outcomeOf } from "./act.ts";
import { feedbackLabels, findElement, type Spot } from "./find-element.ts";

const pressable = new Set(["button", "feedback_buttons", "icon_button", "workflow_button"]);

/** Presses a button. A confirm dialog is only the client's: answered with no, nothing is sent. */
export async function press(
  act: Act,
  button: string,
  options: Where & { confirm?: "yes" | "no" } = {},
): Promise<Outcome> {
  mustBeActive(act);
  const spot = findElement(act, button, options, (element) =>
    pressable.has(textOf(element["type"])),
  );
  if (spot.element["confirm"] !== undefined && options.confirm === "no")
    return { ...nothingSent, error: "confirm_denied" };
  const outcome = await sendAction(act, spot, pressed(spot.element, button));
  const url = textOf(spot.element["url"]);
  return url === "" ? outcome : { ...outcome, opened: url };
}

/** What of the element itself goes into the action. */
function pressed(element: Fields, button: string): Fields {
  if (element["type"] === "feedback_buttons") {
    const side =
      feedbackLabels(element).indexOf(button) === 1 ? "negative_button" : "positive_button";
    const chosen = fieldsOf(element[side]);
    return { text: chosen["text"], value: chosen["value"] };
  }
  const {
    type: _type,
    action_id: _actionId,
    accessibility_label: _label,
    workflow: _workflow,
    visible_to_user_ids: _ids,
    ...rest
  } = element;
  return rest;
}

/** Sends a block_actions delivery for an element; tells the person when the app didn't take it. */
export async function sendAction(act: Act, spot: Spot, what: Fields): Promise<Outcome> {
  const { workspace, person } = act;
  const action = {
    action_id: spot.actionId,
    block_id: spot.blockId,
    ...what,
    type: spot.element["type"],
  };
  const state = spot.place.kind === "view" ? {} : messageState(act, spot);
  if (spot.place.kind === "message") workspace.viewing.set(person.id, spot.place.channel.id);
  const payload = blockActionsPayload(workspace, person, spot.place, action, state);
  const acked = await act.deliveries.deliver("interaction", payload, false);
  if (!acked.acked) {
    const error = acked.error ?? "dispatch_failed";
    const channelId = spot.place.kind === "message" ? { channelId: spot.place.channel.id } : {};
    const label = wordsOf(spot.element["text"]) || spot.actionId;
    showToast(workspace, person.id, {
      text: `${label} failed with the error "${error}"`,
      error,
      ...channelId,
    });
  }
  return outcomeOf(acked);
}

/** What this person chose so far in the message's own inputs. */
export function messageState(act: Act, spot: Spot): SeenState {
  if (spot.place.kind !== "message") return {};
  const key = messageStateKey(act.person.id, spot.place.message);
  return stateOf(spot.place.message.blocks, act.workspace.messageStates.get(key));
}
