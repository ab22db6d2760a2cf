import { type Message } from "../../messages/blocks.ts";
import { paragraph, small, waysRow } from "../../messages/parts.ts";
import { type ButtonSpec } from "../../messages/buttons.ts";
import { roomBeside, card } from "../../messages/card.ts";
import { csv } from "../../messages/csv.ts";
import {
  counted,
  duration,
  firstFew,
  lines,
  type Markdown,
  md,
  name,
  when,
  mention,
} from "../../messages/markdown.ts";
import { table } from "../../messages/table.ts";
import { calledName, type ChangeCommand } from "../../registry/define.ts";
import type { Rolling } from "./rolling.ts";
import { signs } from "../../core/cards/render-result.ts";
import { rolloutSign } from "../../core/cards/tell-act.ts";
import { type StoredRollout, mayTryAgain, nameAt, type Outcome, untried } from "./rollout.ts";

/** Renders the card of a rollout, which is edited in place and mentions nobody. */
export function renderRollout(rollout: StoredRollout, command: ChangeCommand): Message {
  const { record } = rollout;
  const sign = signOf(rollout);
  const all = counted(record.total, "VM");
  const below = {
    meta: [
      md`Requested by ${record.requester.name} at ${when(record.createdAt)} · ${name(record.id)} · ${optionWords(record.options, record.total)}`,
    ],
    ways: steeringButtons(rollout),
  };
  if (rollout.state === "done") return card({ sign, title: doneWords(rollout, command), ...below });
  return card({
    sign,
    title: md`*${command.say.verb}* ${all} (${name(record.words)})`,
    push: md`${command.say.verb} ${all}: ${progressWords(rollout)}`,
    lines: [progressLine(rollout), atWork(rollout), stateLine(rollout, command)],
    ...below,
  });
}

/** How a rollout ended that reached its end: `Restarted 60 VMs (edge-*) in 29 s.` */
function doneWords(rollout: StoredRollout, { say }: ChangeCommand): Markdown {
  const { record, progress } = rollout;
  const { unknown = 0, already, ok } = progress;
  const failed = progress.failed - unknown;
  const changed = ok - already;
  const all = counted(record.total, "VM");
  const rest = [
    failed > 0 && `${failed} failed`,
    unknown > 0 && `${unknown} ${unknown === 1 ? "is" : "are"} unknown`,
    already > 0 && `${already} already ${already === 1 ? "was" : "were"} so`,
  ].filter(Boolean);
  const of = changed === record.total ? all : `${changed} of ${all}`;
  const time = spent(rollout);
  return md`${say.done} ${of} (${name(record.words)})${time && ` in ${time}`}${rest.length > 0 ? `; ${rest.join(", ")}` : ""}.`;
}

const maxCells = 20;

/** The progress, like `■■■□□ 5 of 12 · 1 failed · 2 in progress`. */
function progressLine(rollout: StoredRollout): Markdown {
  const { record } = rollout;
  const cells = Math.min(maxCells, record.total);
  const full = Math.floor((endedIn(rollout) / Math.max(1, record.total)) * cells);
  return md`${"■".repeat(full) + "□".repeat(cells - full)} ${progressWords(rollout)}`;
}

/**
 * How many targets were refused before they were touched. They count like targets that did not
 * begin.
 */
const refusedUntouched = ({ outcomes }: StoredRollout): number =>
  [...outcomes.values()].filter(isUntouched).length;
const isUntouched = ({ is: kind, request }: Outcome) => kind === "failed" && request === "";

/** How many targets the rollout has acted on, including failed and unknown ones. */
const endedIn = (rollout: StoredRollout): number =>
  rollout.progress.ok + rollout.progress.failed - refusedUntouched(rollout);

/** The progress without the bar, which a screen reader can't read. */
function progressWords(rollout: StoredRollout): string {
  const { record, progress } = rollout;
  const { unknown = 0 } = progress;
  const failed = progress.failed - unknown - refusedUntouched(rollout);
  const parts = [
    `${endedIn(rollout)} of ${record.total}`,
    failed > 0 ? `${failed} failed` : "",
    unknown > 0 ? `${unknown} unknown` : "",
    progress.already > 0 ? `${progress.already} already done` : "",
    progress.open.length > 0 ? `${progress.open.length} in progress` : "",
  ];
  return parts.filter(Boolean).join(" · ");
}

const maxAtWork = 5;

/** The VMs in progress, by name. */
function atWork(rollout: StoredRollout): Markdown | undefined {
  const names = rollout.progress.open.map(({ n }) => nameAt(rollout, n));
  if (names.length === 0) return undefined;
  return md`In progress: ${firstFew(names, maxAtWork)}.`;
}

function stateLine(rollout: StoredRollout, command: ChangeCommand): Markdown | undefined {
  const { state, progress } = rollout;
  const how = howOf(progress);
  switch (state) {
    case "paused":
      return md`⏸️ Paused${how}.${progress.open.length > 0 ? " VMs in progress will finish." : ""}`;
    case "ending":
      return md`${progress.endsAs === "stopped" ? "Stopped" : "Stopping"}${how}. VMs in progress will finish; no others start.`;
    case "stopped":
    case "failed":
      return md`Stopped${stopWords(rollout, command)}`;
    default:
      return undefined;
  }
}

/**
 * Who or what paused or stopped it: ` by olivia`, or `: web-1: the compute service reports ERROR`.
 */
function howOf({ by: person, why, endsAs }: StoredRollout["progress"]): string {
  return person && endsAs !== "failed" ? ` by ${person.name}` : why ? `: ${why}` : "";
}

const mostNamed = 3;

/**
 * Why and where it stopped: ` before ledger-2: its measurement matches no pin. ledger-1 restarted;
 * 3 not touched.`
 */
function stopWords(rollout: StoredRollout, { say }: ChangeCommand): Markdown {
  const { outcomes, progress, record, targets } = rollout;
  const { culprit = -1 } = progress;
  const stopping = outcomes.get(culprit);
  const reason = stopping?.is === "unknown" ? "its outcome is unknown" : stopping?.why;
  const role = record.options.canary && culprit === 0 ? "the canary " : "";
  const where = md`${stopping?.request === "" ? "before" : "at"} ${role}${nameAt(rollout, culprit)}: ${reason?.split(untried).at(-1) ?? "it failed"}`;
  const well = targets.filter((_, n) => outcomes.get(n)?.is === "ok").map(calledName);
  const names = well.length > mostNamed ? counted(well.length, "VM") : well.join(", ");
  const done = / /.test(say.done) ? `${say.done} ${names}` : `${names} ${say.done.toLowerCase()}`;
  const left = record.total - endedIn(rollout);
  const parts = [well.length > 0 && done, left > 0 && `${left} not touched`].filter(Boolean);
  return md`${stopping ? md` ${where}` : md`${took(rollout)}${howOf(progress)}`}.${parts.length > 0 ? ` ${parts.join("; ")}.` : ""}`;
}

const spent = ({ progress: { startedAt }, changedAt }: StoredRollout): string =>
  startedAt === undefined ? "" : duration(changedAt - startedAt);

function took(rollout: StoredRollout): string {
  const time = spent(rollout);
  return time && ` after ${time}`;
}

function steeringButtons(rollout: StoredRollout): ButtonSpec[] {
  const { state, record, progress } = rollout;
  const value = JSON.stringify({ roll: record.id });
  const about = `the rollout on ${record.words}`;
  const stop: ButtonSpec = { label: "Stop", about, action: "roll:stop", value, style: "danger" };
  if (state === "running") return [{ label: "Pause", about, action: "roll:pause", value }, stop];
  if (state === "paused")
    return [{ label: "Resume", about, action: "roll:resume", value, style: "primary" }, stop];
  const left = record.total - progress.ok - progress.failed;
  if (state !== "stopped" && state !== "failed") return [];
  const culprit = progress.culprit === undefined ? undefined : nameAt(rollout, progress.culprit);
  const others = `the other ${left}`;
  const rest = culprit ? `Skip ${culprit}, continue with ${left}` : `Continue with ${others}`;
  const again = `Try ${culprit} again${left > 0 ? `, then ${others}` : ""}`;
  return [
    ...(left > 0 ? [{ label: rest, action: "roll:rest", value }] : []),
    ...(mayTryAgain(rollout) ? [{ label: again, action: "roll:again", value }] : []),
  ];
}

function optionWords({ maxUnavailable, canary, stopOnFailure }: Rolling, total: number): string {
  const atOnce = maxUnavailable >= total ? "all at once" : `${maxUnavailable} at a time`;
  const stop = stopOnFailure === 1 ? "the first failure" : `${stopOnFailure} failures`;
  return [atOnce, canary ? "canary first" : "", `stops after ${stop}`].filter(Boolean).join(" · ");
}

const signOf = ({ state, final, progress }: StoredRollout): string =>
  rolloutSign(state, { isOver: final, isWell: progress.failed === 0 });

const columns = ["VM", "Result", "Project", "Took", "Why"] as const;

/**
 * Renders the result for the thread, with the only mention of the requester. Failures come first.
 */
export function renderRolloutEnd(rollout: StoredRollout, command: ChangeCommand): Message {
  const { record } = rollout;
  const rows = rowsOf(rollout, command);
  const deed = md`${command.say.verb} of ${counted(record.total, "VM")}`;
  const isDone = rollout.state === "done";
  const result = isDone
    ? doneWords(rollout, command)
    : md`${deed} was stopped${stopWords(rollout, command)}`;
  const title = md`${signOf(rollout)} ${mention(record.requester.id)} ${result}`;
  const progress = isDone ? undefined : progressLine(rollout);
  const skipped = record.leftOut.map((vm) => `${vm.name} (${vm.why})`);
  const skippedLine = skipped.length > 0 ? small(md`Skipped: ${firstFew(skipped, 20)}`) : undefined;
  const all = `List of ${counted(rows.length, "VM")}`;
  const list = { label: all, action: "roll:list", value: JSON.stringify({ roll: record.id }) };
  const room = roomBeside(
    paragraph(lines(title, progress)),
    skippedLine,
    small(md`${all}`),
    waysRow([list]),
  );
  const { part, shown } = table(deed.value, columns, rows, room);
  return card({
    title,
    push: isDone ? undefined : md`${result} ${progressWords(rollout)}`,
    lines: [progress],
    body: [part, skippedLine],
    ...(rows.length > shown ? { meta: [md`${rows.length - shown} more:`], ways: [list] } : {}),
  });
}

/** The list of all targets as a file, because a table may be too small. */
export const rolloutList = (rollout: StoredRollout, command: ChangeCommand) => ({
  name: `${rollout.record.id}.csv`,
  title: `${command.say.verb} of ${counted(rollout.record.total, "VM")}`,
  content: csv([columns, ...rowsOf(rollout, command)]),
});

/**
 * The order of outcomes in the list. Other outcomes mean not started: they come after failures and
 * before successes.
 */
const ranks: Partial<Record<Outcome["is"], number>> = { failed: 0, unknown: 1, ok: 3, already: 3 };

/**
 * Rows in this order: failed, unknown, not started, done. Within each, the original order stays.
 */
function rowsOf(
  { progress, targets, outcomes }: StoredRollout,
  command: ChangeCommand,
): readonly (readonly string[])[] {
  const rows = targets.map((target, n) => {
    const outcome = outcomes.get(n);
    const row = [
      calledName(target),
      `${resultOf(outcome, n < progress.next, command)}${n === progress.culprit ? ", stopped here" : ""}`,
      target.projectName ?? target.projectId,
      outcome?.tookMs === undefined ? "" : duration(outcome.tookMs),
      outcome?.why ?? "",
    ];
    return { rank: ranks[outcome?.is ?? "cancelled"] ?? 2, row };
  });
  return rows.toSorted((a, b) => a.rank - b.rank).map(({ row }) => row);
}

function resultOf(outcome: Outcome | undefined, hasBegun: boolean, command: ChangeCommand): string {
  const { is: kind, request } = outcome ?? {};
  if (kind === "ok") return `${signs.done} ${command.say.done}`;
  if (kind === "already") return `${signs.idle} Nothing to do`;
  if (kind === "failed") return `${signs.failed} ${request === "" ? "Not touched" : "Failed"}`;
  if (kind === "unknown") return `${signs.unknown} Unknown`;
  return hasBegun ? `${signs.failed} Canceled` : "– Not started";
}
