import type { Checkboxes, InputBlock, KnownBlock, ModalView, PlainTextInput } from "@slack/types";
import type { Log } from "../../log/log.ts";
import { plainText, section } from "../../messages/message.ts";
import { lines, type Markdown, md, name, when } from "../../messages/text.ts";
import { type ChangeCommand, type DialogFacts, calledName } from "../../registry/define.ts";
import { type Argument, argumentsOf } from "../../registry/arguments.ts";
import type { StoredRequest } from "../../requests/journal/record.ts";
import { errorReply } from "../error-reply.ts";
import type { Reply } from "../receive/interaction.ts";

export const dialogCallback = "dialog";

/** What a dialog carries to its submission. Only ids: everything is looked up and decided again. */
export interface DialogMeta {
  command: string;
  targetId: string;
  channelId: string;
  threadTs?: string;
  sealedResponseUrl?: string;
  /** The request whose safety snapshot it restores. */
  undoes?: string;
  /** Why it can't wait for approvals. */
  breakGlass?: string;
  /** Of the button that opened it, where that makes one request, however often it is pressed. */
  once?: string;
}

export function modal(
  title: string,
  blocks: KnownBlock[],
  form?: { callback: string; metadata: object; submit: string; close?: string },
): ModalView {
  return {
    type: "modal",
    title: plainText(title, 24),
    close: plainText(form ? (form.close ?? "Cancel") : "Close", 24),
    ...(form && {
      callback_id: form.callback,
      private_metadata: JSON.stringify(form.metadata),
      submit: plainText(form.submit, 24),
    }),
    blocks,
  };
}

/**
 * Opens immediately, because a trigger expires in three seconds and reading may take longer; then shows what `make`
 * returns, or its error. False when Slack didn't open it.
 */
export async function openView(
  title: string,
  make: () => Promise<ModalView>,
  reply: Reply,
  log: Log,
): Promise<boolean> {
  const opened = await reply.open(modal(title, [section(md`Loading the current state…`)]));
  if (!opened) return false;
  try {
    await reply.update(opened.id, await make());
  } catch (error) {
    const { text } = errorReply(error, log);
    await reply.update(opened.id, modal(title, [section(md`${text}`)]));
  }
  return true;
}

/** What will happen, what will be lost, the arguments, and for destructive commands the name and a reason. */
export function dialogView(options: {
  command: ChangeCommand;
  facts: DialogFacts;
  meta: DialogMeta;
  /** When the facts were read (ms). */
  now: number;
  /** The approvals needed; undefined when it runs immediately. */
  approvals?: Markdown | undefined;
  /** That changes are frozen. */
  frozen?: Markdown | undefined;
  /** The request that it undoes: then its arguments are set. */
  undone?: StoredRequest | undefined;
}): ModalView {
  const { command, facts, meta, approvals, undone, frozen } = options;
  const { input, target } = facts;
  const warnings = [
    ...(command.risk?.({ target, input, vms: facts.vms }) ?? []),
    ...(command.dialog?.warn?.(facts) ?? []),
  ];
  const shown = argumentsOf(command).filter(
    (argument) => !undone && isShown(argument, command, input),
  );
  const filled = { ...command.dialog?.fill?.(facts), ...input };
  const asksName = command.class === "destroy" || meta.breakGlass !== undefined;
  const what = command.on === "new-project" ? undefined : whatLine(command, facts, options.now);
  const emergency = meta.breakGlass !== undefined && breakGlassLine;
  const said = lines(frozen, emergency, undone && undoLine(undone), what, ...warnings);
  const blocks = [
    ...(said.value === "" ? [] : [section(said)]),
    ...shown.map((argument) => inputBlock(argument, command, filled, facts.snapshots)),
    ...(asksName ? nameInputs(target.name, meta.breakGlass) : []),
    ...(approvals ? [section(approvals)] : []),
  ];
  const { verb } = command.say;
  const kind = meta.breakGlass !== undefined ? "Break-glass" : undone ? "Undo" : undefined;
  return modal(kind === undefined ? titleOf(command) : `${kind}: ${verb}`, blocks, {
    callback: dialogCallback,
    metadata: { ...meta, values: hidden(command, input, shown) },
    submit: approvals ? "Request approval" : verb,
  });
}

export function titleOf(command: ChangeCommand): string {
  return `${command.say.verb} ${command.on === "vm" ? "a VM" : "a project"}`;
}

const breakGlassLine = md`🚨 *This skips approval.* It runs at once. The audit channel is told who did it, why, and how it ended, and someone else must sign a review.`;

function undoLine({ record, progress }: StoredRequest): Markdown {
  const { command, target, requester } = record;
  const at = progress.sentAt ?? record.createdAt;
  return md`*This undoes* the ${command} of ${name(calledName(target))} that ${requester.name} requested. It goes back to the safety snapshot ${name(progress.safety?.snapshotId)}, taken right before that, at ${when(at, "{date_short_pretty} {time}")}.`;
}

function whatLine(command: ChangeCommand, { target, seen }: DialogFacts, now: number): Markdown {
  const isPlain = target.kind === "vm" && target.projectName && !target.sharesName;
  const where = isPlain ? md` in ${target.projectName}` : md``;
  return md`*${command.say.verb}* ${name(calledName(target))}${where}, ${seen?.status ?? target.status} at ${when(now)}.`;
}

/** Whether the form shows this argument: never the target, and some only while another has a value. */
function isShown(
  argument: Argument,
  command: ChangeCommand,
  input: Record<string, unknown>,
): boolean {
  if (argument.target !== undefined || argument.isRolling) return false;
  const rule = command.dialog?.showWhen?.[argument.key];
  return rule === undefined || input[rule[0]] === rule[1];
}

/** The values of arguments that the form doesn't show. */
function hidden(
  command: ChangeCommand,
  input: Record<string, unknown>,
  shown: readonly Argument[],
) {
  const keys = new Set(shown.map(({ key }) => key));
  const dependent = new Set(Object.keys(command.dialog?.showWhen ?? {}));
  return Object.fromEntries(
    Object.entries(input).filter(([key]) => !keys.has(key) && !dependent.has(key)),
  );
}

export function inputBlock(
  argument: Argument,
  command: ChangeCommand,
  input: Record<string, unknown>,
  snapshots: DialogFacts["snapshots"] = [],
): KnownBlock {
  const { key, description, isSwitch } = argument;
  const { showWhen = {}, watches = [] } = command.dialog ?? {};
  const steers = watches.includes(key) || Object.values(showWhen).some(([other]) => other === key);
  return {
    type: "input",
    block_id: `arg:${key}`,
    label: plainText(argument.label),
    optional: (argument.isOptional && !command.dialog?.needed?.includes(key)) || isSwitch,
    ...(description && !isSwitch ? { hint: plainText(description) } : {}),
    ...(steers ? { dispatch_action: true } : {}),
    element: elementFor(argument, input[key], steers, snapshots),
  };
}

function elementFor(
  { key, label, choices, description, isSwitch, picker, placeholder }: Argument,
  value: unknown,
  steers: boolean,
  snapshots: DialogFacts["snapshots"],
): InputBlock["element"] {
  const text = typeof value === "string" ? value : undefined;
  if (isSwitch) return checkbox(`arg:${key}`, description ?? label, value === true);
  if (choices) {
    const options = choices.map((choice) => ({ text: plainText(choice, 75), value: choice }));
    const chosen = options.find((option) => option.value === text);
    return {
      type: "static_select",
      action_id: steers ? "dialog:refresh" : `arg:${key}`,
      options,
      ...(chosen ? { initial_option: chosen } : {}),
    };
  }
  if (picker) {
    // As it is called, not its ID, which is what was looked up
    const called = picker === "snapshot" && snapshots.find(({ id }) => id === text)?.name;
    return {
      type: "external_select",
      action_id: `pick:${picker}${steers ? ":refresh" : ""}`,
      min_query_length: 0,
      placeholder: plainText(placeholder ?? "Type to search"),
      ...(text === undefined
        ? {}
        : { initial_option: { text: plainText(called || text, 75), value: text.slice(0, 75) } }),
    };
  }
  return {
    type: "plain_text_input",
    action_id: `arg:${key}`,
    max_length: 300,
    ...(placeholder ? { placeholder: plainText(placeholder) } : {}),
    ...(text === undefined ? {} : { initial_value: text.slice(0, 300) }),
  };
}

export function checkbox(id: string, label: string, isTicked: boolean): Checkboxes {
  const option = { text: plainText(label, 75), value: "true" };
  return {
    type: "checkboxes",
    action_id: id,
    options: [option],
    ...(isTicked ? { initial_options: [option] } : {}),
  };
}

export function textInput(
  id: string,
  label: string,
  { hint, ...limits }: Omit<PlainTextInput, "type" | "action_id"> & { hint?: string },
): InputBlock {
  return {
    type: "input",
    block_id: id,
    label: plainText(label),
    ...(hint === undefined ? {} : { hint: plainText(hint) }),
    element: { type: "plain_text_input", action_id: id, ...limits },
  };
}

export function reasonInput(hint: string, initial?: string): KnownBlock {
  const given = initial === undefined ? {} : { initial_value: initial };
  const limits = { multiline: true, min_length: 3, max_length: 500 };
  return textInput("reason", "Reason", { hint, ...limits, ...given });
}

function nameInputs(targetName: string, emergency?: string): KnownBlock[] {
  const hint =
    emergency === undefined
      ? "Shown to approvers and recorded in the audit trail."
      : "Shown in the audit channel and to who signs the review.";
  return [
    textInput("confirm", `Type ${targetName} to confirm`, { max_length: 300 }),
    reasonInput(hint, emergency),
  ];
}

/** The form's values as arguments, without empty ones; a ticked box is true. */
export function inputOf(
  command: ChangeCommand,
  carried: Record<string, unknown>,
  values: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const input = { ...carried };
  for (const { key, isSwitch } of argumentsOf(command)) {
    const value = values[`arg:${key}`];
    if (isSwitch) {
      if (Array.isArray(value) ? value.length > 0 : value !== undefined && value !== "")
        input[key] = true;
      continue;
    }
    if (typeof value === "string" && value.trim() !== "") input[key] = value.trim();
  }
  return input;
}
