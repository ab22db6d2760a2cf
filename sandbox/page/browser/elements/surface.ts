import type { Outcome, Where } from "../../../slack/actions.ts";
import { type Fields, textOf } from "../../../slack/fields.ts";
import type { Seen, SeenOption, SeenState } from "../../../slack/seen.ts";
import { askConfirm } from "./confirm.ts";

/** What came of it, with what a select offers when that was asked. */
export type Answer = Outcome & { options?: SeenOption[] };

/** Does something as the person of the page. Undefined when it couldn't be done; the reason is shown as a toast. */
export type Do = (action: string, words: object) => Promise<Answer | undefined>;

/** Where blocks stand: a message, a modal or the Home tab. Elements act through it. */
export interface Surface {
  seen: Seen;
  /** How elements in here are found again: the ts of the message, or the kind of view. */
  where: NonNullable<Where["in"]>;
  channelId?: string;
  /** Keeps what was typed apart from what was typed elsewhere. */
  id: string;
  state: SeenState;
  errors: Record<string, string>;
  do: Do;
}

export type Choice = string | readonly string[] | number | null;

/** An interactive element and the block around it. */
export interface Control {
  element: Fields;
  block: Fields;
  surface: Surface;
}

const actionIdOf = ({ element }: Control) => textOf(element["action_id"]);
export const blockIdOf = ({ block }: Control) => textOf(block["block_id"]);
export const focusKeyOf = (control: Control) =>
  `${control.surface.id}/${blockIdOf(control)}/${actionIdOf(control)}`;
export const valueOf = (control: Control) =>
  control.surface.state[blockIdOf(control)]?.[actionIdOf(control)];

function placeOf({ surface }: Control): Where {
  return {
    in: surface.where,
    ...(surface.channelId === undefined ? {} : { channel: surface.channelId }),
  };
}

/** The name under which the workspace finds a control: an input block has just one, other blocks may have several. */
function nameOf(control: Control): string {
  return control.block["type"] === "input" ? blockIdOf(control) : actionIdOf(control);
}

/** Presses a button: asks first when it has a confirm dialog, and shows that it is busy until the app has answered. */
export async function press(
  control: Control,
  button: HTMLElement,
  label = actionIdOf(control),
): Promise<Outcome | undefined> {
  if (!(await askConfirm(control.element["confirm"], control.surface.seen))) return undefined;
  button.setAttribute("aria-busy", "true");
  try {
    const value = control.element["value"];
    return await control.surface.do("presses", {
      button: label,
      ...placeOf(control),
      ...(typeof value === "string" ? { value } : {}),
    });
  } finally {
    button.removeAttribute("aria-busy");
  }
}

/** Chooses. False when the person said no in the element's confirm dialog, or it couldn't be done. */
export async function choose(control: Control, choice: Choice): Promise<boolean> {
  if (!(await askConfirm(control.element["confirm"], control.surface.seen))) return false;
  const outcome = await control.surface.do("chooses", {
    element: nameOf(control),
    choice,
    ...placeOf(control),
  });
  return outcome !== undefined;
}

/** Asks the app what a select offers for the words typed so far. */
export async function suggest(control: Control, typed: string): Promise<SeenOption[] | undefined> {
  const outcome = await control.surface.do("suggests", {
    element: nameOf(control),
    typed,
    ...placeOf(control),
  });
  return outcome === undefined || outcome.error !== undefined ? undefined : outcome.options;
}
