import type { KnownBlock, ModalView } from "@slack/types";
import { statusFacts } from "../../compute/compute.ts";
import { plainText, section } from "../../messages/message.ts";
import { counted, lines, type Markdown, md, name, plain } from "../../messages/text.ts";
import type { ChangeCommand, Target } from "../../registry/define.ts";
import { argumentsOf } from "../../registry/arguments.ts";
import type { Skipped, RolloutRecord } from "../../rollouts/rollout.ts";
import { checkbox, inputBlock, modal, textInput } from "./dialog-view.ts";
import { vmOf } from "../../requests/submit/resolve.ts";

export const rolloutCallback = "roll";

/** With more, the dialog shows counts, and the list is a file. */
export const maxListed = 40;
const maxWithoutNumber = 20;

/** Whether the number of VMs must be typed: against a slip of the hand. */
export function asksNumber({ total, isEverything }: RolloutRecord): boolean {
  return total > maxWithoutNumber || isEverything === true;
}

/** The dialog of a rollout: its VMs, what will happen to them, and how. */
export function rolloutView(options: {
  command: ChangeCommand;
  record: RolloutRecord;
  targets: readonly Target[];
  /** Whether the requester got the list as a file. */
  hasFile: boolean;
  /** That changes are frozen. */
  frozen?: Markdown | undefined;
}): ModalView {
  const { command, record, targets, hasFile, frozen } = options;
  const { verb } = command.say;
  const what = md`*${verb}* ${counted(targets.length, "VM")} (${name(record.words)}).`;
  const everything = record.isEverything === true && md`⚠️ *This is every VM Gatehouse knows.*`;
  const needs = argumentsOf(command).filter((one) => one.target === undefined && !one.isRolling);
  const blocks = [
    section(
      lines(
        frozen,
        what,
        everything,
        interruption(command, targets, record),
        ...warnings(command, targets, record.input),
      ),
    ),
    ...(targets.length > maxListed ? [countsOf(targets, hasFile)] : listOf(targets)),
    ...skippedBlocks(record.leftOut),
    ...needs.map((argument) => inputBlock(argument, command, record.input)),
    ...rollingInputs(record),
    ...(asksNumber(record) ? [numberInput(targets.length)] : []),
  ];
  const metadata = { roll: record.id };
  const form = { callback: rolloutCallback, metadata, submit: verb };
  return modal(`${verb} ${counted(targets.length, "VM")}`, blocks, form);
}

/** How many VMs it interrupts, and how many at a time. */
function interruption(
  { class: of }: ChangeCommand,
  targets: readonly Target[],
  { options }: RolloutRecord,
): Markdown | undefined {
  if (of !== "disrupt") return undefined;
  const running = targets.filter(({ status }) => !statusFacts(status).isStopped).length;
  if (running === 0) return undefined;
  return md`⚠️ *This interrupts what runs on ${counted(running, "VM")}*, ${options.maxUnavailable} at a time.`;
}

/** The warnings of the command's dialog for each VM, equal ones once. */
function warnings(
  command: ChangeCommand,
  targets: readonly Target[],
  input: Record<string, unknown>,
): readonly Markdown[] {
  const said = new Map<string, { text: Markdown; times: number }>();
  for (const target of targets) {
    const facts = { target, seen: vmOf(target), vms: [], snapshots: [], input };
    for (const text of command.dialog?.warn?.(facts) ?? []) {
      said.set(text.value, { text, times: (said.get(text.value)?.times ?? 0) + 1 });
    }
  }
  const all = [...said.values()];
  const shown = all
    .slice(0, 8)
    .map(({ text, times }) =>
      times === targets.length ? text : md`${counted(times, "VM")}: ${text}`,
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
  const where = md`${counts}, in ${counted(projects.size, "project")}.`;
  return section(hasFile ? md`${where} The list of them is in your direct messages.` : where);
}

function skippedBlocks(skipped: readonly Skipped[]): KnownBlock[] {
  if (skipped.length === 0) return [];
  const reasons = Map.groupBy(skipped, ({ why }) => why);
  const rows = [...reasons].slice(0, 10).map(([why, those]) => {
    const names = those.slice(0, 10).map((one) => one.name);
    const more = those.length > names.length ? ` and ${those.length - names.length} more` : "";
    return md`• ${why}: ${names.join(", ")}${more}`;
  });
  return [section(lines(md`Skipped:`, ...rows))];
}

function rollingInputs({ options }: RolloutRecord): KnownBlock[] {
  const { maxUnavailable, canary, stopOnFailure } = options;
  return [
    textInput("roll:most", "Max unavailable", {
      hint: "A number, or a percentage like 10%",
      max_length: 5,
      initial_value: String(maxUnavailable),
    }),
    {
      type: "input",
      block_id: "roll:canary",
      optional: true,
      label: plainText("Canary"),
      element: checkbox("roll:canary", "Start with one VM; continue only if it succeeds", canary),
    },
    textInput("roll:failures", "Stop after this many failures", {
      max_length: 4,
      initial_value: String(stopOnFailure),
    }),
  ];
}

function numberInput(total: number): KnownBlock {
  const hint = "The number of VMs that will change.";
  return textInput("roll:number", `Type ${total} to confirm`, { hint, max_length: 10 });
}
