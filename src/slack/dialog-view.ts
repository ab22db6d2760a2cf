import type { KnownBlock, ModalView } from "@slack/types";
import { plainText, section } from "../messages/message.ts";
import { lines, type Markdown, md, name } from "../messages/text.ts";
import type { ChangeCommand, DialogFacts } from "../registry/define.ts";
import { type Argument, argumentsOf } from "../registry/usage.ts";

export const dialogCallback = "dialog";

/** What a dialog carries with it from opening to submission. Ids only: everything is looked up and decided again. */
export interface DialogMeta {
  command: string;
  targetId: string;
  channelId: string;
  threadTs?: string;
  sealedResponseUrl?: string;
}

/** Shown at once, because a trigger lives three seconds and reading may take longer. */
export function loadingView(title: string): ModalView {
  return {
    type: "modal",
    title: plainText(title, 24),
    close: plainText("Close", 24),
    blocks: [section(md`Looking at what stands now…`)],
  };
}

/** A dialog that can't go on, with the reason. */
export function stoppedView(title: string, why: Markdown): ModalView {
  return {
    type: "modal",
    title: plainText(title, 24),
    close: plainText("Close", 24),
    blocks: [section(why)],
  };
}

/** The whole dialog: what will happen, what will be lost, the arguments, and for what destroys the name and a reason. */
export function dialogView(options: {
  command: ChangeCommand;
  facts: DialogFacts;
  meta: DialogMeta;
  /** Who has to approve, in words; undefined when it runs at once. */
  approvals?: Markdown | undefined;
}): ModalView {
  const { command, facts, meta, approvals } = options;
  const { input, target } = facts;
  const warnings = command.dialog?.warn?.(facts) ?? [];
  const shown = argumentsOf(command).filter((argument) => isShown(argument, command, input));
  const destroys = command.class === "destroy";
  return {
    type: "modal",
    callback_id: dialogCallback,
    private_metadata: JSON.stringify({ ...meta, values: hidden(command, input, shown) }),
    title: plainText(titleOf(command), 24),
    submit: plainText(approvals ? "Ask for approval" : command.say.verb, 24),
    close: plainText("Keep as it is", 24),
    blocks: [
      ...(command.on === "new-project"
        ? []
        : [section(lines(whatLine(command, facts), ...warnings))]),
      ...shown.map((argument) => inputBlock(argument, command, input)),
      ...(destroys ? destroyInputs(target.name) : []),
      ...(approvals ? [section(approvals)] : []),
    ],
  };
}

export function titleOf(command: ChangeCommand): string {
  return `${command.say.verb} ${command.on === "vm" ? "a VM" : "a project"}`;
}

function whatLine(command: ChangeCommand, { target, seen }: DialogFacts): Markdown {
  const where = target.kind === "vm" && target.projectName ? md` in ${target.projectName}` : md``;
  return md`*${command.say.verb}* ${name(target.name)}${where} (${name(target.id)}), ${seen?.status ?? target.status} now.`;
}

/** Whether a form asks for this argument now: never for the target, and some only while another has a value. */
function isShown(
  argument: Argument,
  command: ChangeCommand,
  input: Record<string, unknown>,
): boolean {
  if (argument.target !== undefined || argument.isRolling) return false;
  const rule = command.dialog?.showWhen?.[argument.key];
  return rule === undefined || input[rule[0]] === rule[1];
}

/** What was given for arguments that the form doesn't show: it comes along unchanged. */
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
): KnownBlock {
  const { key, placeholder, description } = argument;
  const value = input[key];
  const isSteering = Object.values(command.dialog?.showWhen ?? {}).some(([other]) => other === key);
  const base = {
    type: "input" as const,
    // A new id for a new value: Slack keeps what was typed under an id it knows
    block_id: `arg:${key}`,
    label: plainText(argument.label),
    optional: argument.isOptional || argument.isSwitch,
    ...(description ? { hint: plainText(description) } : {}),
    ...(isSteering ? { dispatch_action: true } : {}),
  };
  if (argument.isSwitch) {
    const option = { text: plainText(description ?? argument.label, 75), value: "true" };
    const { hint: _said, ...rest } = base;
    return {
      ...rest,
      element: {
        type: "checkboxes",
        action_id: `arg:${key}`,
        options: [option],
        ...(value === true ? { initial_options: [option] } : {}),
      },
    };
  }
  if (argument.choices) {
    const options = argument.choices.map((choice) => ({
      text: plainText(choice, 75),
      value: choice,
    }));
    const chosen = options.find((option) => option.value === value);
    return {
      ...base,
      element: {
        type: "static_select",
        action_id: isSteering ? "dialog:refresh" : `arg:${key}`,
        options,
        ...(chosen ? { initial_option: chosen } : {}),
      },
    };
  }
  if (argument.picker) {
    const chosen =
      typeof value === "string"
        ? { text: plainText(value, 75), value: value.slice(0, 75) }
        : undefined;
    return {
      ...base,
      element: {
        type: "external_select",
        action_id: `pick:${argument.picker}`,
        min_query_length: 0,
        placeholder: plainText(placeholder ?? "Type to search"),
        ...(chosen ? { initial_option: chosen } : {}),
      },
    };
  }
  return {
    ...base,
    element: {
      type: "plain_text_input",
      action_id: `arg:${key}`,
      max_length: 300,
      ...(placeholder ? { placeholder: plainText(placeholder) } : {}),
      ...(typeof value === "string" ? { initial_value: value.slice(0, 300) } : {}),
    },
  };
}

function destroyInputs(targetName: string): KnownBlock[] {
  return [
    {
      type: "input",
      block_id: "confirm",
      label: plainText(`Type ${targetName} to confirm`),
      element: { type: "plain_text_input", action_id: "confirm", max_length: 300 },
    },
    {
      type: "input",
      block_id: "reason",
      label: plainText("Reason"),
      hint: plainText("Those who approve read it, and it stands in the audit trail."),
      element: {
        type: "plain_text_input",
        action_id: "reason",
        multiline: true,
        min_length: 3,
        max_length: 500,
      },
    },
  ];
}

/** The form's values as arguments: empty ones are left out, a ticked box is true. */
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
