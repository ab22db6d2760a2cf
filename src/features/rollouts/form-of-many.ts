import type { ModalView } from "@slack/types";
import { statusFacts } from "../../fleet/compute/compute.ts";
import { countByStatus } from "../../fleet/inventory/status-order.ts";
import { type Fact, type MatteringFact, mattersTo, unreadIn } from "../../core/facts/fact.ts";
import { unreadLine } from "../../core/facts/facts-about.ts";
import { type InputPart, textInput } from "../../messages/inputs.ts";
import { Markdown, counted, firstFew, lines, md, name, plain } from "../../messages/markdown.ts";
import { type SaidPart, linesOf, paragraph, waysRow } from "../../messages/parts.ts";
import { modal } from "../../messages/views.ts";
import type { ChangeCommand, Target } from "../../registry/define.ts";
import type { Input } from "../../registry/invocation.ts";
import { vmOf } from "../../core/submit/resolve-targets.ts";
import { argumentInput, rehearseButton, shownOf } from "../../talk/form-view.ts";
import { type RolloutRecord, type Skipped, nameAt, firstBlockingTarget } from "./rollout.ts";

export const rolloutCallback = "roll";

/** What a form shows beside the plan. */
export interface AroundPlan {
  frozen: Markdown | undefined;
  /** What is known of the VMs. */
  known: readonly Fact[];
  /** Whether it can be asked what would happen. */
  isRehearsed: boolean;
  /** The requester got the list of VMs as a file. */
  hasFile?: boolean;
}

/**
 * The form of a change of several VMs: the plan, what is known to go wrong with it, the arguments of
 * each request, and the rollout's options.
 */
export function formOfMany(
  command: ChangeCommand,
  record: RolloutRecord,
  targets: readonly Target[],
  { frozen, known, isRehearsed, hasFile = false }: AroundPlan,
): ModalView {
  const { verb } = command.say;
  const { input } = record;
  const summary = lines(
    frozen,
    md`*${verb}* ${counted(targets.length, "VM")} (${name(record.words)}).`,
    record.isEverything === true && md`⚠️ *This is every VM you can see.*`,
    interruption(command, targets, record),
    ...warnings(command, targets, input),
  );
  const parts = [
    paragraph(summary),
    knownParts(command, record, targets, known),
    targets.length > maxListed ? countsOf(record, targets, hasFile) : listOf(targets),
    skippedLines(record.leftOut),
    ...shownOf(command, input).map((argument) => argumentInput(argument, command, input)),
    ...rollingInputs(record),
    asksNumber(record) ? numberInput(targets.length) : undefined,
    isRehearsed ? waysRow([rehearseButton("roll:rehearse", { roll: record.id })]) : undefined,
  ];
  const form = { callback: rolloutCallback, metadata: { roll: record.id }, submit: verb };
  return modal(`${verb} ${counted(targets.length, "VM")}`, parts, form);
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

/**
 * Warnings of the command's form for each VM. Equal ones are shown once. What is known of its pin is
 * among the facts.
 */
function warnings(
  command: ChangeCommand,
  targets: readonly Target[],
  input: Input,
): readonly Markdown[] {
  const warningLines = targets.flatMap((target) => {
    const facts = { target, seen: vmOf(target), vms: [], snapshots: [], input };
    return command.dialog?.warn?.({ ...facts, isPinned: false }) ?? [];
  });
  const all = [...Map.groupBy(warningLines, ({ value }) => value)];
  const shown = all.slice(0, 8).map(([value, { length }]) => {
    const text = new Markdown(value);
    return length === targets.length ? text : md`${counted(length, "VM")}: ${text}`;
  });
  return all.length > 8 ? [...shown, md`…and ${all.length - 8} other changes.`] : shown;
}

/** With more VMs the form shows counts, and the list is sent as a file. */
const maxListed = 40;

function listOf(targets: readonly Target[]): SaidPart {
  const rows = targets.map(
    ({ name: called, projectName, projectId, status }) =>
      md`• ${name(plain(called, 80))} in ${plain(projectName ?? projectId, 60)}, ${plain(status, 20)}`,
  );
  return linesOf(rows);
}

function countsOf({ id }: RolloutRecord, targets: readonly Target[], hasFile: boolean): SaidPart {
  const projects = new Set(targets.map(({ projectId }) => projectId));
  const where = md`${countByStatus(targets)}, in ${counted(projects.size, "project")}.`;
  const list = { label: "As a file", action: "roll:file", value: JSON.stringify({ roll: id }) };
  if (!hasFile) return paragraph(where, list);
  return paragraph(md`${where} The list of them is in your direct messages.`);
}

const mostKnown = 10;

/** What is known of the targets, those that would fail first, and the button that leaves these out. */
function knownParts(
  command: ChangeCommand,
  record: RolloutRecord,
  targets: readonly Target[],
  facts: readonly Fact[],
): readonly SaidPart[] {
  const mattering = mattersTo(command, facts);
  const failing = failingIn(mattering);
  const rows = mattering.slice(0, mostKnown).map(({ text }) => md`• ${text}`);
  const more = mattering.length - rows.length;
  const at = firstBlockingTarget(targets, failing, record.options);
  const stop =
    at === undefined
      ? undefined
      : md`It would stop at ${name(nameAt({ targets }, at))}, number ${at + 1} of ${targets.length}.`;
  const knownText = lines(
    failing.size > 0 &&
      md`🛑 *${failing.size} of these ${failing.size === 1 ? "is" : "are"} known to fail.* ${stop}`,
    failing.size === 0 && rows.length > 0 && md`⚠️ *Known of these VMs:*`,
    ...rows,
    more > 0 && md`…and ${more} more.`,
    unreadLine(unreadIn(facts)),
  );
  if (knownText.value === "") return [];
  const value = JSON.stringify({ roll: record.id });
  const label = failing.size === 1 ? "Leave it out" : "Leave them out";
  const leave = { label, action: "roll:leave", value };
  const hasOthers = failing.size > 0 && failing.size < targets.length;
  return [paragraph(knownText), waysRow(hasOthers ? [leave] : [])];
}

/** The targets that are known to fail, by ID. One that halts a rollout halts it, whatever else. */
export function failingIn(mattering: readonly MatteringFact[]) {
  const failing = new Map<string, "fails" | "halts">();
  for (const { about, blocking } of mattering)
    if (blocking === "halts" || (blocking === "fails" && !failing.has(about.id)))
      failing.set(about.id, blocking);
  return failing;
}

function skippedLines(skipped: readonly Skipped[]): SaidPart | undefined {
  if (skipped.length === 0) return undefined;
  const reasons = Map.groupBy(skipped, ({ why }) => why);
  const rows = [...reasons].slice(0, 10).map(([why, those]) => {
    const names = those.map((vm) => vm.name);
    return md`• ${why}: ${firstFew(names, 10)}`;
  });
  return paragraph(lines(md`Skipped:`, ...rows));
}

const maxWithoutNumber = 20;

/** Whether the number of VMs must be typed, as a guard against a slip. */
export function asksNumber({ total, isEverything }: RolloutRecord): boolean {
  return total > maxWithoutNumber || isEverything === true;
}

function numberInput(total: number): InputPart {
  const hint = "The number of VMs that will change.";
  return textInput("roll:number", `Type ${total} to confirm`, { hint, most: 10 });
}

function rollingInputs({ options }: RolloutRecord): InputPart[] {
  const hint = "A number, or a percentage like 10%";
  const unavailable = { hint, most: 5, initial: String(options.maxUnavailable) };
  const failures = { most: 4, initial: String(options.stopOnFailure) };
  const onlyIf = "Start with one VM; continue only if it succeeds";
  return [
    textInput("roll:most", "Max unavailable", unavailable),
    {
      kind: "input",
      id: "roll:canary",
      label: "Canary",
      entry: { kind: "tick", label: onlyIf, isTicked: options.canary },
      isOptional: true,
    },
    textInput("roll:failures", "Stop after this many failures", failures),
  ];
}
