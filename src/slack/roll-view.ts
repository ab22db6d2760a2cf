import type { KnownBlock, ModalView } from "@slack/types";
import { plainText, section } from "../messages/message.ts";
import { lines, type Markdown, md, name, plain } from "../messages/text.ts";
import type { ChangeCommand, DialogFacts } from "../registry/define.ts";
import type { Target } from "../registry/target.ts";
import { argumentsOf } from "../registry/usage.ts";
import { count } from "../rolls/render-roll.ts";
import type { LeftOut, RollRecord } from "../rolls/roll.ts";
import { inputBlock } from "./dialog-view.ts";

export const rollCallback = "roll";

/** Beyond so many nobody reads a list: then there are counts, and a file. */
export const mostListed = 40;
/** Beyond so many, the number is typed: a hand that slipped does not type it. */
const mostWithoutNumber = 20;

/** Whether the number of VMs has to be typed. */
export function asksNumber({
  total,
  isEverything = false,
}: Pick<RollRecord, "total" | "isEverything">): boolean {
  return total > mostWithoutNumber || isEverything;
}

/** The dialog for several VMs: each of them, what will happen to it, and how to go over them. Only ids come back. */
export function rollView(options: {
  command: ChangeCommand;
  record: RollRecord;
  targets: readonly Target[];
  /** Whether a file with all of them went to the asker. */
  hasFile: boolean;
}): ModalView {
  const { command, record, targets, hasFile } = options;
  const { verb } = command.say;
  const what = md`*${verb}* ${count(targets.length, "VM")} (${name(record.words)}).`;
  const everything = record.isEverything === true && md`⚠️ *These are all VMs that there are.*`;
  const needs = argumentsOf(command).filter(
    (argument) => argument.target === undefined && !argument.isRolling,
  );
  return {
    type: "modal",
    callback_id: rollCallback,
    private_metadata: JSON.stringify({ roll: record.id }),
    title: plainText(`${verb} ${count(targets.length, "VM")}`, 24),
    submit: plainText(verb, 24),
    close: plainText("Keep as it is", 24),
    blocks: [
      section(lines(what, everything, ...warnings(command, targets, record.input))),
      ...(targets.length > mostListed ? [countsOf(targets, hasFile)] : listOf(targets)),
      ...leftOutBlocks(record.leftOut),
      ...needs.map((argument) => inputBlock(argument, command, record.input)),
      ...rollingInputs(record),
      ...(asksNumber(record) ? [numberInput(targets.length)] : []),
    ],
  };
}

/** What the command's own dialog would say of each, said once for all of which it is the same. */
function warnings(
  command: ChangeCommand,
  targets: readonly Target[],
  input: Record<string, unknown>,
): readonly Markdown[] {
  const said = new Map<string, { text: Markdown; times: number }>();
  for (const target of targets) {
    const { id, name: called, projectId, status, specs } = target;
    const seen: DialogFacts["seen"] = {
      id,
      name: called,
      projectId,
      status,
      ...(specs ? { specs } : {}),
    };
    const facts = { target, seen, vms: [], snapshots: [], input };
    for (const text of command.dialog?.warn?.(facts) ?? []) {
      said.set(text.value, { text, times: (said.get(text.value)?.times ?? 0) + 1 });
    }
  }
  const all = [...said.values()];
  const shown = all
    .slice(0, 8)
    .map(({ text, times }) =>
      times === targets.length ? text : md`${count(times, "VM")}: ${text}`,
    );
  return all.length > 8 ? [...shown, md`…and ${all.length - 8} other changes.`] : shown;
}

const perSection = 10;

function listOf(targets: readonly Target[]): KnownBlock[] {
  const rows = targets.map(
    ({ name: called, projectName, projectId, status }) =>
      md`• ${name(plain(called, 80))} in ${plain(projectName ?? projectId, 60)}, ${plain(status, 20)}`,
  );
  const sections: KnownBlock[] = [];
  for (let at = 0; at < rows.length; at += perSection)
    sections.push(section(lines(...rows.slice(at, at + perSection))));
  return sections;
}

function countsOf(targets: readonly Target[], hasFile: boolean): KnownBlock {
  const statuses = Map.groupBy(targets, ({ status }) => status);
  const projects = new Set(targets.map(({ projectId }) => projectId));
  const counts = [...statuses].map(([status, those]) => `${those.length} ${status}`).join(", ");
  const where = md`${counts}, in ${count(projects.size, "project")}.`;
  return section(hasFile ? md`${where} The list of them is in your direct messages.` : where);
}

function leftOutBlocks(leftOut: readonly LeftOut[]): KnownBlock[] {
  if (leftOut.length === 0) return [];
  const reasons = Map.groupBy(leftOut, ({ why }) => why);
  const rows = [...reasons].slice(0, 10).map(([why, those]) => {
    const names = those.slice(0, 10).map((one) => one.name);
    const more = those.length > names.length ? ` and ${those.length - names.length} more` : "";
    return md`• ${why}: ${names.join(", ")}${more}`;
  });
  return [section(lines(md`Not touched:`, ...rows))];
}

function rollingInputs({ options }: RollRecord): KnownBlock[] {
  const alone = { text: plainText("One alone first; the others if it ends well"), value: "true" };
  return [
    {
      type: "input",
      block_id: "roll:most",
      label: plainText("At most so many at once"),
      hint: plainText("A number, or a percentage like 10%"),
      element: {
        type: "plain_text_input",
        action_id: "roll:most",
        max_length: 5,
        initial_value: String(options.maxUnavailable),
      },
    },
    {
      type: "input",
      block_id: "roll:canary",
      optional: true,
      label: plainText("Canary"),
      element: {
        type: "checkboxes",
        action_id: "roll:canary",
        options: [alone],
        ...(options.canary ? { initial_options: [alone] } : {}),
      },
    },
    {
      type: "input",
      block_id: "roll:failures",
      label: plainText("Stop after so many failures"),
      element: {
        type: "plain_text_input",
        action_id: "roll:failures",
        max_length: 4,
        initial_value: String(options.stopOnFailure),
      },
    },
  ];
}

function numberInput(total: number): KnownBlock {
  return {
    type: "input",
    block_id: "roll:number",
    label: plainText(`Type ${total} to confirm`),
    hint: plainText("So many VMs will be touched."),
    element: { type: "plain_text_input", action_id: "roll:number", max_length: 10 },
  };
}
