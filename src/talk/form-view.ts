import type { ModalView } from "@slack/types";
import * as z from "zod";
import type { ButtonSpec } from "../messages/buttons.ts";
import { type Entry, type InputPart, textInput } from "../messages/inputs.ts";
import { Markdown, atTime, lines, md, when } from "../messages/markdown.ts";
import { paragraph, waysRow } from "../messages/parts.ts";
import { modal } from "../messages/views.ts";
import {
  type Argument,
  type ChangeCommand,
  type DialogFacts,
  argumentsOf,
  nounOf,
  type Labels,
} from "../registry/define.ts";
import type { Input } from "../registry/invocation.ts";
import { callOf } from "../core/request/stage.ts";
import { type StoredRequest, sentAtOf } from "../core/request/stored-request.ts";
import { targetName } from "../core/cards/asking.ts";
import { buttonOrigin } from "../core/request/origin.ts";
import { labelsOf } from "./dialog-facts.ts";
import type { EmergencyWords } from "../registry/emergency.ts";

export const dialogCallback = "dialog";

/**
 * Private metadata that a form carries to its submission. It holds only names and IDs: everything
 * is looked up and decided again.
 */
export const formMeta = z.object({
  command: z.string(),
  targetId: z.string(),
  channelId: z.string(),
  threadTs: z
    .string()
    .regex(/^\d{1,20}\.\d{1,20}$/)
    .exactOptional(),
  /** Values of arguments that the form doesn't show. */
  values: z.record(z.string(), z.unknown()).exactOptional(),
  /**
   * The button that opened the form, if that button makes one request however often it is pressed.
   */
  origin: buttonOrigin.exactOptional(),
  /** Reason given with `--break-glass`: why the change can't wait for approvals. */
  breakGlass: z.string().max(300).exactOptional(),
  /** The reason of the request that this one repeats or undoes, to begin with. */
  reason: z.string().max(500).exactOptional(),
});
export type FormMeta = z.output<typeof formMeta>;

/**
 * Builds the form of a change of one target: what will happen, what will be lost, and the
 * arguments. A change that destroys, or that skips approvals, also asks for the target's name and a
 * reason.
 */
export function formOfOne(form: {
  command: ChangeCommand;
  facts: DialogFacts;
  meta: FormMeta;
  /** Says which approvals are needed; undefined when the change runs immediately. */
  approvals?: Markdown | undefined;
  /**
   * The request that this change undoes; the form then shows no arguments, because they are fixed.
   */
  undone?: StoredRequest | undefined;
  /** Says that changes are frozen; undefined when they aren't. */
  frozen?: Markdown | undefined;
  /** Words for a change that skips approvals; shown only when `meta.breakGlass` is set. */
  emergency?: EmergencyWords | undefined;
  /** Whether a feature answers “What would happen?”. */
  isRehearsed?: boolean;
  /** When the facts were read (ms). */
  now: number;
}): ModalView {
  const { command, facts, meta, approvals, undone, frozen, now } = form;
  const emergency = form.meta.breakGlass === undefined ? undefined : form.emergency;
  const { input, target } = facts;
  const { verb } = command.say;
  const { labels } = labelsOf(facts);
  const shown = undone ? [] : shownOf(command, input);
  const filled = { ...command.dialog?.fill?.(facts), ...input };
  const asksName = command.class === "destroy" || emergency !== undefined;
  const warnings = lines(
    frozen,
    emergency?.warning,
    undone && undoLine(undone, command, now),
    command.on === "new-project" || undone ? undefined : whatLine(command, facts, now),
    ...(command.risk?.({ target, input, vms: facts.vms }) ?? []),
    ...(command.dialog?.warn?.(facts) ?? []),
  );
  const parts = [
    warnings.value === "" ? undefined : paragraph(warnings),
    ...shown.map((argument) => argumentInput(argument, command, filled, labels)),
    ...(asksName ? nameInputs(target.name, emergency, meta.breakGlass ?? meta.reason) : []),
    approvals && paragraph(approvals),
    form.isRehearsed ? waysRow([rehearseButton(rehearseAction)]) : undefined,
  ];
  const title = undone ? `Undo the ${nounOf(command)}` : titleOf(command);
  return modal(emergency ? `Break-glass: ${verb}` : title, parts, {
    callback: dialogCallback,
    metadata: { ...meta, values: hidden(command, input, shown) },
    submit: approvals ? "Request approval" : verb,
  });
}

/** The action of the button that asks what a form's change would do. A feature handles it. */
export const rehearseAction = "dialog:rehearse";

/** Makes the button of a form that asks what its change would do. */
export const rehearseButton = (action: string, value: object = {}): ButtonSpec => ({
  label: "What would happen?",
  action,
  value: JSON.stringify(value),
});

export function titleOf(command: ChangeCommand): string {
  return `${command.say.verb} ${command.on === "vm" ? "a VM" : "a project"}`;
}

function undoLine(undone: StoredRequest, command: ChangeCommand, now: number): Markdown {
  const { target, requester } = undone.record;
  const at = callOf(undone.stage)?.safety?.at ?? sentAtOf(undone);
  return md`*Undo the ${nounOf(command)} of ${targetName(target)}*: back to how it was ${atTime(at, now)}, before ${requester.name} had it done.`;
}

function whatLine(command: ChangeCommand, { target, seen }: DialogFacts, now: number): Markdown {
  return md`*${command.say.verb}* ${targetName(target)}, ${seen?.status ?? target.status} at ${when(now)}.`;
}

/**
 * The arguments that the form shows. The target is never one; some show only while another argument
 * has a certain value.
 */
export function shownOf(command: ChangeCommand, input: Input): readonly Argument[] {
  return argumentsOf(command).filter(({ key, target, isRolling }) => {
    const rule = command.dialog?.showWhen?.[key];
    return target === undefined && !isRolling && (!rule || input[rule[0]] === rule[1]);
  });
}

/** The values of arguments that the form doesn't show. */
function hidden(command: ChangeCommand, input: Input, shown: readonly Argument[]): Input {
  const keys = new Set(shown.map(({ key }) => key));
  const dependent = new Set(Object.keys(command.dialog?.showWhen ?? {}));
  return Object.fromEntries(
    Object.entries(input).filter(([key]) => !keys.has(key) && !dependent.has(key)),
  );
}

/** The input of an argument, with what was given for it. */
export function argumentInput(
  argument: Argument,
  command: ChangeCommand,
  input: Input,
  labels: Labels = {},
): InputPart {
  const { key, label, description, isSwitch } = argument;
  const { showWhen = {}, watches = [] } = command.dialog ?? {};
  const isWatched =
    watches.includes(key) || Object.values(showWhen).some(([other]) => other === key);
  return {
    kind: "input",
    id: `arg:${key}`,
    label,
    entry: entryOf(argument, input[key], labels[key]),
    hint: isSwitch ? undefined : description,
    isOptional: (argument.isOptional && !command.dialog?.needed?.includes(key)) || isSwitch,
    isWatched,
    action: actionOf(argument, isWatched),
  };
}

/** What Slack names when it asks for options, or reports that a choice changed. */
function actionOf({ key, choices, isSwitch, picker }: Argument, isWatched: boolean): string {
  if (choices && !isSwitch) return isWatched ? "dialog:refresh" : `arg:${key}`;
  if (picker && !isSwitch) return `pick:${picker}${isWatched ? ":refresh" : ""}`;
  return `arg:${key}`;
}

/** How an argument is answered: by a tick, a choice, a search, or as text. */
function entryOf(
  { label, choices, description, isSwitch, picker, placeholder }: Argument,
  value: unknown,
  called: string | undefined,
): Entry {
  const text = typeof value === "string" ? value : undefined;
  if (isSwitch) return { kind: "tick", label: description ?? label, isTicked: value === true };
  if (choices) return { kind: "choice", options: choices, chosen: text };
  if (picker) {
    return {
      kind: "search",
      placeholder: placeholder ?? "Type to search",
      // Show the name of the snapshot if it is known, not its ID
      chosen: text === undefined ? undefined : { label: called || text, value: text },
    };
  }
  return { kind: "text", most: 300, placeholder, initial: text };
}

export const reasonInput = (
  hint: string,
  { label = "Reason", initial }: { label?: string; initial?: string | undefined } = {},
): InputPart => textInput("reason", label, { hint, isLong: true, least: 3, most: 500, initial });

/** Asks what a person looked at before they record an outcome or sign a review. */
export const checkedInput = (): InputPart =>
  reasonInput("Recorded in the audit trail, with your name.", { label: "What did you check?" });

function nameInputs(called: string, emergency?: EmergencyWords, why?: string): InputPart[] {
  const hint = emergency?.reasonHint ?? "Shown to approvers and recorded in the audit trail.";
  return [
    textInput("confirm", `Type ${called} to confirm`, { most: 300 }),
    reasonInput(hint, { initial: why }),
  ];
}
