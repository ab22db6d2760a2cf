import type { Rehearsed } from "../../commands/context.ts";
import { frozenWords } from "../../core/cards/asking.ts";
import { type Blocking, type Fact, mattersTo, unreadIn } from "../../core/facts/fact.ts";
import { unreadLine } from "../../core/facts/facts-about.ts";
import type { Freeze } from "../../core/request/freeze.ts";
import { type Markdown, counted, duration, md } from "../../messages/markdown.ts";
import { type ChangeCommand, calledName, nounOf, projectOf } from "../../registry/define.ts";
import type { Target } from "../../registry/define.ts";
import { lowerFirst } from "../../text/letter-case.ts";

/** What is known of a change before it is requested. What couldn't be read is in `unread`. */
export interface RehearsalFacts {
  command: ChangeCommand;
  targets: readonly Target[];
  /** The change in plain words. */
  deed: string;
  /** How many targets would be changed at a time. */
  atOnce: number;
  /** Who must approve it, in sentences. Undefined when nobody must, or when it isn't known. */
  approval: string | undefined;
  /** Whether nobody must approve it. A change that skips approvals says so in its form. */
  needsNobody: boolean;
  /** Why too few people could approve it. */
  nobody: string | undefined;
  freeze: Freeze | undefined;
  /** The limit that would refuse it now, in sentences. */
  limit: string | undefined;
  /** Why no request would be made, in sentences. */
  stops: readonly Markdown[];
  /** What is known of the targets. */
  known: readonly Fact[];
  /** Undefined when they couldn't be read. */
  earlier: EarlierRuns | undefined;
  /** What is interrupted or lost, as the command says it. */
  lost: readonly Markdown[];
  /** When the snapshot to restore was taken (ms). */
  snapshotAt: number | undefined;
  /** Names of what else couldn't be read: `earlier runs`. */
  unread: readonly string[];
}

/** Durations of earlier runs of the same command, from send to end (ms). */
export interface EarlierRuns {
  /** Runs on the targets themselves, or on others in their projects where they had none. */
  on: "targets" | "projects";
  tookMs: readonly number[];
}

const maxShown = 8;

/** Says in sentences what would happen. Pure. */
export function tellRehearsal(facts: RehearsalFacts): Rehearsed {
  const { approval, nobody, freeze, limit } = facts;
  const unread = [...unreadIn(facts.known), ...facts.unread];
  const mattering = mattersTo(facts.command, facts.known);
  const more = mattering.length - maxShown;
  const isClear =
    freeze === undefined &&
    limit === undefined &&
    facts.stops.length === 0 &&
    nobody === undefined &&
    unread.length === 0 &&
    mattering.every(({ blocking }) => blocking === "note");
  return {
    deed: facts.deed,
    approval: approvalLine(facts),
    frozen: frozenWords(freeze),
    lines: [
      limit && md`🛑 A limit would refuse it now: ${lowerFirst(limit)}`,
      ...facts.stops.map((stop) => md`🛑 ${stop}`),
      ...mattering.slice(0, maxShown).map(({ text, blocking }) => md`${signs[blocking]} ${text}`),
      more > 0 && md`…and ${more} more.`,
      isClear && md`✅ Nothing is known that would stop it.`,
      timeLine(facts),
      ...facts.lost,
      facts.snapshotAt !== undefined &&
        approval !== undefined &&
        md`What is written until the approval comes is lost, too.`,
      unreadLine(unread),
    ].filter((line) => typeof line === "object"),
  };
}

function approvalLine(facts: RehearsalFacts): Markdown | undefined {
  const { approval, needsNobody, nobody } = facts;
  if (nobody !== undefined) return md`🛑 ${nobody}`;
  if (needsNobody) return md`👥 Nobody has to approve it.`;
  return approval === undefined ? undefined : md`👥 ${approval}`;
}

const signs = { fails: "🛑", halts: "🔴", note: "⚠️" } satisfies Record<Blocking, string>;

/** How long it takes, by earlier runs. Undefined for what ends at once, when it is approved. */
function timeLine(facts: RehearsalFacts): Markdown | undefined {
  const { command, targets, earlier, atOnce } = facts;
  if (!earlier || (command.on === "vm" && command.keeps)) return undefined;
  const { tookMs } = earlier;
  const where = placeWords(facts);
  const noun = nounOf(command);
  if (tookMs.length === 0)
    return md`⏱️ How long it takes isn't known: no earlier ${noun} of ${nameOf(targets)}${where === "" ? "" : `, or ${where},`} is on record.`;
  const sorted = tookMs.toSorted((a, b) => a - b);
  const median = sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
  const slowest = sorted.at(-1) ?? 0;
  const of = earlier.on === "targets" ? `of ${nameOf(targets)}` : where;
  const runs = `${counted(sorted.length, `earlier ${noun}`)} ${of}`;
  const took =
    sorted.length === 1
      ? `${runs} took ${duration(median)}`
      : `${runs} took ${duration(median)} (median), the slowest ${duration(slowest)}`;
  if (targets.length < 2) return md`⏱️ ${took}.`;
  const wholeMs = Math.ceil(targets.length / atOnce) * median;
  return md`⏱️ ${took}; ${counted(targets.length, "VM")}, ${atOnce} at a time, take about ${duration(wholeMs)}.`;
}

function nameOf(targets: readonly Target[]): string {
  const [only, ...others] = targets;
  if (!only || only.name === "") return "its kind";
  return others.length === 0 ? calledName(only) : "these VMs";
}

/** `in payments`, or `in their projects`. Empty where no project is known. */
function placeWords({ targets }: RehearsalFacts): string {
  const [only, ...others] = targets;
  if (others.length > 0) return "in their projects";
  const project = only && (projectOf(only) ?? (only.kind === "vm" ? only.projectName : undefined));
  return project === undefined ? "" : `in ${project}`;
}
