import type { KnownBlock, ModalView } from "@slack/types";
import { statusFacts } from "../../fleet/compute/compute.ts";
import { countByStatus } from "../../fleet/inventory/known.ts";
import {
  Markdown,
  counted,
  firstFew,
  lines,
  md,
  name,
  plain,
  section,
  sections,
} from "../../messages/message.ts";
import type { ChangeCommand, Target } from "../../registry/define.ts";
import type { Input } from "../../registry/invocation.ts";
import { vmOf } from "../../core/submit/resolve-targets.ts";
import { checkbox, field, inputBlock, modal, shownOf, textInput } from "../../talk/form-view.ts";
import type { RolloutRecord, Skipped } from "./rollout.ts";

export const rolloutCallback = "roll";

/**
 * The form of a change of several VMs: the plan, the arguments of each request, and the rollout's
 * options. `hasFile`: the requester got the list of VMs as a file.
 */
export function formOfMany(
  command: ChangeCommand,
  record: RolloutRecord,
  targets: readonly Target[],
  more: { frozen: Markdown | undefined; pinned: ReadonlySet<string>; hasFile?: boolean },
): ModalView {
  const { frozen, pinned, hasFile = false } = more;
  const { verb } = command.say;
  const { input } = record;
  const said = lines(
    frozen,
    md`*${verb}* ${counted(targets.length, "VM")} (${name(record.words)}).`,
    record.isEverything === true && md`⚠️ *This is every VM you can see.*`,
    interruption(command, targets, record),
    ...warnings(command, targets, input, pinned),
  );
  const blocks = [
    section(said),
    ...(targets.length > maxListed ? [countsOf(targets, hasFile)] : listOf(targets)),
    ...skippedBlocks(record.leftOut),
    ...shownOf(command, input).map((argument) => inputBlock(argument, command, input)),
    ...rollingInputs(record),
    ...(asksNumber(record) ? [numberInput(targets.length)] : []),
  ];
  const form = { callback: rolloutCallback, metadata: { roll: record.id }, submit: verb };
  return modal(`${verb} ${counted(targets.length, "VM")}`, blocks, form);
}

/** Says how many VMs are interrupted, and how many at a time. */
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

/** Warnings of the command's form for each VM. Equal ones are shown once. */
function warnings(
  command: ChangeCommand,
  targets: readonly Target[],
  input: Input,
  pinned: ReadonlySet<string>,
): readonly Markdown[] {
  const said = targets.flatMap((target) => {
    const facts = { target, seen: vmOf(target), vms: [], snapshots: [], input };
    return command.dialog?.warn?.({ ...facts, isPinned: pinned.has(target.id) }) ?? [];
  });
  const all = [...Map.groupBy(said, ({ value }) => value)];
  const shown = all.slice(0, 8).map(([value, { length }]) => {
    const text = new Markdown(value);
    return length === targets.length ? text : md`${counted(length, "VM")}: ${text}`;
  });
  return all.length > 8 ? [...shown, md`…and ${all.length - 8} other changes.`] : shown;
}

/** With more VMs the form shows counts, and the list is sent as a file. */
export const maxListed = 40;

function listOf(targets: readonly Target[]): KnownBlock[] {
  const rows = targets.map(
    ({ name: called, projectName, projectId, status }) =>
      md`• ${name(plain(called, 80))} in ${plain(projectName ?? projectId, 60)}, ${plain(status, 20)}`,
  );
  return sections(rows);
}

function countsOf(targets: readonly Target[], hasFile: boolean): KnownBlock {
  const projects = new Set(targets.map(({ projectId }) => projectId));
  const where = md`${countByStatus(targets)}, in ${counted(projects.size, "project")}.`;
  return section(hasFile ? md`${where} The list of them is in your direct messages.` : where);
}

function skippedBlocks(skipped: readonly Skipped[]): KnownBlock[] {
  if (skipped.length === 0) return [];
  const reasons = Map.groupBy(skipped, ({ why }) => why);
  const rows = [...reasons].slice(0, 10).map(([why, those]) => {
    const names = those.map((one) => one.name);
    return md`• ${why}: ${firstFew(names, 10)}`;
  });
  return [section(lines(md`Skipped:`, ...rows))];
}

const maxWithoutNumber = 20;

/** Whether the number of VMs must be typed, as a guard against a slip. */
export function asksNumber({ total, isEverything }: RolloutRecord): boolean {
  return total > maxWithoutNumber || isEverything === true;
}

function numberInput(total: number): KnownBlock {
  const hint = "The number of VMs that will change.";
  return textInput("roll:number", `Type ${total} to confirm`, { hint, max_length: 10 });
}

function rollingInputs({ options }: RolloutRecord): KnownBlock[] {
  const hint = "A number, or a percentage like 10%";
  const most = { hint, max_length: 5, initial_value: String(options.maxUnavailable) };
  const failures = { max_length: 4, initial_value: String(options.stopOnFailure) };
  const onlyIf = "Start with one VM; continue only if it succeeds";
  const canary = checkbox("roll:canary", onlyIf, options.canary);
  return [
    textInput("roll:most", "Max unavailable", most),
    field("roll:canary", "Canary", canary, { optional: true }),
    textInput("roll:failures", "Stop after this many failures", failures),
  ];
}
