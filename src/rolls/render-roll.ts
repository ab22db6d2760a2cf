import {
  buttons,
  type ButtonSpec,
  context,
  message,
  type Message,
  readable,
  section,
} from "../messages/message.ts";
import { duration, lines, type Markdown, md, name, when } from "../messages/text.ts";
import type { Rolling } from "../registry/rolling.ts";
import type { ChangeCommand } from "../registry/define.ts";
import type { StoredRoll } from "./roll.ts";

/** The one message of a roll in the channel, edited in place. It notifies nobody. */
export function renderRoll(roll: StoredRoll, command: ChangeCommand): Message {
  const { record } = roll;
  const title = md`${signOf(roll)} *${command.say.verb}* ${count(record.total, "VM")} (${name(record.words)})`;
  const progress = progressLine(roll);
  return message(
    readable(md`${command.say.verb} ${count(record.total, "VM")}: ${progress}`),
    section(lines(title, progress, stateLine(roll))),
    context(
      md`Asked by ${record.requester.name} at ${when(record.createdAt)} · ${name(record.id)} · ${optionWords(record.options, record.total)}`,
    ),
    buttons(steeringButtons(roll)),
  );
}

const mostCells = 20;

/** `▓▓▓░░ 5/12 · 1 failed · 2 under way`. What failed has ended too, and so has what nobody knows. */
export function progressLine({
  record,
  progress,
}: Pick<StoredRoll, "record" | "progress">): Markdown {
  const ended = progress.ok + progress.failed;
  const { unknown = 0 } = progress;
  const failed = progress.failed - unknown;
  const cells = Math.min(mostCells, record.total);
  const full = Math.floor((ended / Math.max(1, record.total)) * cells);
  const bar = "▓".repeat(full) + "░".repeat(cells - full);
  const parts = [
    `${bar} ${ended}/${record.total}`,
    failed > 0 ? `${failed} failed` : "",
    unknown > 0 ? `${unknown} unknown` : "",
    progress.already > 0 ? `${progress.already} needed nothing` : "",
    progress.open.length > 0 ? `${progress.open.length} under way` : "",
  ];
  return md`${parts.filter(Boolean).join(" · ")}`;
}

function stateLine(roll: StoredRoll): Markdown | undefined {
  const { state, progress, record } = roll;
  const left = record.total - progress.ok - progress.failed;
  switch (state) {
    case "paused":
      return md`⏸️ Paused: ${progress.why ?? "by a person"}.${progress.open.length > 0 ? " What is under way goes on." : ""}`;
    case "ending":
      return md`Stopping: ${progress.why ?? "by a person"}. What is under way ends first, nothing further begins.`;
    case "done":
      return md`Ended${took(roll)}.`;
    case "stopped":
    case "failed":
      return md`Stopped${took(roll)}: ${progress.why ?? "by a person"}.${left > 0 ? md` ${count(left, "VM")} not begun.` : ""}`;
    default:
      return undefined;
  }
}

export function took({ progress, changedAt }: StoredRoll): string {
  return progress.startedAt === undefined
    ? ""
    : ` after ${duration(changedAt - progress.startedAt)}`;
}

function steeringButtons({ state, record }: StoredRoll): ButtonSpec[] {
  const value = JSON.stringify({ roll: record.id });
  const stop: ButtonSpec = { label: "Stop", action: "roll:stop", value, style: "danger" };
  if (state === "running") return [{ label: "Pause", action: "roll:pause", value }, stop];
  if (state === "paused")
    return [{ label: "Resume", action: "roll:resume", value, style: "primary" }, stop];
  return [];
}

/** How it goes about it, in words. */
export function optionWords(
  { maxUnavailable, canary, stopOnFailure }: Rolling,
  total: number,
): string {
  const atOnce = maxUnavailable >= total ? "all at once" : `${maxUnavailable} at a time`;
  const stop = stopOnFailure === 1 ? "the first failure" : `${stopOnFailure} failures`;
  return [atOnce, canary ? "one alone first" : "", `stops after ${stop}`]
    .filter(Boolean)
    .join(" · ");
}

export function signOf({ state, progress }: Pick<StoredRoll, "state" | "progress">): string {
  if (state === "done") return progress.failed > 0 ? "⚠️" : "✅";
  if (state === "failed") return "❌";
  if (state === "stopped") return "🚫";
  return state === "paused" ? "⏸️" : "⏳";
}

/** `1 VM`, `12 VMs`. */
export function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}
