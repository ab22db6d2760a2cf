import type { Outcome, Where } from "../actions.ts";
import { chosenValue } from "../blocks/input-state.ts";
import { suggestionPayload } from "../deliver/payloads.ts";
import { type Fields, fieldsOf, isFields, optionsOf, textOf } from "../fields.ts";
import type { SeenOption, SeenState, SeenValue } from "../seen.ts";
import { showToast } from "../state/notifications.ts";
import type { View } from "../state/records.ts";
import { messageStateKey } from "../state/seen-by.ts";
import type { Workspace } from "../state/workspace.ts";
import { type Act, mustBeActive, nothingSent, outcomeOf } from "./act.ts";
import { findElement, type Spot } from "./find-element.ts";
import { messageState, sendAction } from "./pressing.ts";

const pressable = new Set(["button", "feedback_buttons", "icon_button", "workflow_button"]);
export const isChoosable = (element: Fields) => !pressable.has(textOf(element["type"]));
export const isExternal = (element: Fields) => textOf(element["type"]).endsWith("external_select");

type Choice = string | readonly string[] | number | null;

/** Chooses in a select, menu, group or picker, or fills a text input. The app hears of it unless it is a plain input. */
export async function choose(
  act: Act,
  wanted: string,
  choice: Choice,
  where: Where = {},
): Promise<Outcome> {
  mustBeActive(act);
  const spot = findElement(act, wanted, where, isChoosable);
  const value = chosenValue(
    spot.element,
    resolved(act.workspace, spot.element, choice),
    offeredTo(act, spot),
  );
  if (spot.element["type"] !== "overflow") keep(act, spot, value);
  if (spot.block["type"] === "input" && spot.block["dispatch_action"] !== true) return nothingSent;
  const { initial_option: _option, options: _options, ...shown } = fieldsOf(spot.element);
  return sendAction(act, spot, { ...shown, ...value });
}

/** Handles and channel names become ids, as picking from Slack's own lists does. */
export function resolved(workspace: Workspace, element: Fields, choice: Choice): Choice {
  const type = textOf(element["type"]);
  const one = (value: string) => {
    const name = value.replace(/^[@#]/, "");
    if (type.includes("users_select"))
      return [...workspace.people.values()].find((person) => person.name === name)?.id ?? value;
    if (/(?:channels|conversations)_select/.test(type))
      return [...workspace.channels.values()].find((channel) => channel.name === name)?.id ?? value;
    return value;
  };
  if (typeof choice === "string") return one(choice);
  return Array.isArray(choice) ? choice.map(one) : choice;
}

/** Stores a choice where it was made. */
export function keep(act: Act, spot: Spot, value: SeenValue): void {
  const put = (state: SeenState): SeenState => ({
    ...state,
    [spot.blockId]: { ...state[spot.blockId], [spot.actionId]: value },
  });
  if (spot.place.kind === "view") {
    const { [spot.blockId]: _, ...errors } = spot.place.view.errors;
    Object.assign(spot.place.view, {
      state: put(spot.place.view.state),
      errors,
    } satisfies Partial<View>);
  } else {
    act.workspace.messageStates.set(
      messageStateKey(act.person.id, spot.place.message),
      put(messageState(act, spot)),
    );
  }
  act.workspace.changed();
}

/** Types into a select whose options come from the app; those it offers can then be chosen. */
export async function suggest(
  act: Act,
  wanted: string,
  typed: string,
  where: Where = {},
): Promise<Outcome & { options: SeenOption[] }> {
  mustBeActive(act);
  const spot = findElement(act, wanted, where, isExternal);
  const least =
    typeof spot.element["min_query_length"] === "number" ? spot.element["min_query_length"] : 3;
  if (typed.length < least) return { ...nothingSent, options: [] };
  const payload = suggestionPayload(
    act.workspace,
    act.person,
    spot.place,
    spot.blockId,
    spot.actionId,
    typed,
  );
  const acked = await act.deliveries.deliver("options", payload, true);
  const answer = fieldsOf(acked.body);
  const options = optionsOf(answer);
  const wrong =
    acked.acked &&
    (!isFields(acked.body) ||
      options.length > 100 ||
      (answer["options"] === undefined && answer["option_groups"] === undefined));
  if (!acked.acked || wrong) {
    const error = acked.error ?? "invalid_options";
    showToast(act.workspace, act.person.id, { text: "Couldn't load options", error });
    return { ...outcomeOf(acked), error, options: [] };
  }
  act.workspace.offered.set(offeredKey(act, spot), options);
  return { ...outcomeOf(acked), options };
}

function offeredKey(act: Act, spot: Spot): string {
  const place = spot.place.kind === "view" ? spot.place.view.id : spot.place.message.ts;
  return `${act.person.id} ${place} ${spot.actionId}`;
}

/** What the app suggested to this person for this select. */
export function offeredTo(act: Act, spot: Spot): readonly SeenOption[] {
  return act.workspace.offered.get(offeredKey(act, spot)) ?? [];
}
