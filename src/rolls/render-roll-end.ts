import { csv } from "../messages/csv.ts";
import { context, message, type Message, readable, section, table } from "../messages/message.ts";
import { duration, lines, md, mention } from "../messages/text.ts";
import type { ChangeCommand } from "../registry/define.ts";
import { endedWell, hasFailed } from "./next-step.ts";
import { count, progressLine, signOf, took } from "./render-roll.ts";
import type { Outcome, RollTargets, StoredRoll } from "./roll.ts";

/** What a table of Slack's holds (https://docs.slack.dev/reference/block-kit/blocks/table-block); the rest goes into a file. */
const mostRows = 99;

const columns = ["VM", "Result", "Project", "Took", "Why"] as const;

/** How each of them ended, in the thread, with the one mention of whoever asked. Failures first. */
export function renderRollEnd(
  roll: StoredRoll,
  targets: RollTargets,
  outcomes: ReadonlyMap<number, Outcome>,
  command: ChangeCommand,
): Message {
  const { record, progress } = roll;
  const rows = rowsOf(roll, targets, outcomes, command);
  const what = md`${command.say.verb} of ${count(record.total, "VM")}`;
  const how = roll.state === "done" ? md`has ended` : md`was stopped`;
  const why = roll.state === "done" || !progress.why ? md`` : md`: ${progress.why}`;
  const said = md`${signOf(roll)} ${mention(record.requester.id)} ${what} ${how}${took(roll)}${why}.`;
  const { leftOut } = record;
  return message(
    readable(lines(said, progressLine(roll))),
    section(lines(said, progressLine(roll))),
    table(columns, rows.slice(0, mostRows)),
    rows.length > mostRows
      ? [context(md`${rows.length - mostRows} more: all of them are in the file.`)]
      : [],
    leftOut.length > 0
      ? [
          context(
            md`Left out from the beginning: ${leftOut
              .slice(0, 20)
              .map((one) => `${one.name} (${one.why})`)
              .join(", ")}${leftOut.length > 20 ? ` and ${leftOut.length - 20} more` : ""}`,
          ),
        ]
      : [],
  );
}

/** All rows as a file, where the table can't hold them. */
export function rollEndFile(
  roll: StoredRoll,
  targets: RollTargets,
  outcomes: ReadonlyMap<number, Outcome>,
  command: ChangeCommand,
): string | undefined {
  const rows = rowsOf(roll, targets, outcomes, command);
  return rows.length > mostRows ? csv([columns, ...rows]) : undefined;
}

/** What failed, then what nobody knows, what was not begun, and what went well; each in the order it was in. */
function rowsOf(
  { progress }: StoredRoll,
  targets: RollTargets,
  outcomes: ReadonlyMap<number, Outcome>,
  command: ChangeCommand,
): readonly (readonly string[])[] {
  const rows = targets.map((target, n) => {
    const outcome = outcomes.get(n);
    const row = [
      target.name,
      resultOf(outcome, n < progress.next, command),
      target.projectName ?? target.projectId,
      outcome?.tookMs === undefined ? "" : duration(outcome.tookMs),
      outcome?.why ?? "",
    ];
    return { rank: rankOf(outcome), row };
  });
  return rows.toSorted((a, b) => a.rank - b.rank).map(({ row }) => row);
}

function rankOf(outcome: Outcome | undefined): number {
  if (outcome === undefined) return 2;
  if (hasFailed(outcome)) return outcome.is === "failed" ? 0 : 1;
  return endedWell(outcome) ? 3 : 2;
}

function resultOf(outcome: Outcome | undefined, hasBegun: boolean, command: ChangeCommand): string {
  switch (outcome?.is) {
    case "ok":
      return `✅ ${command.say.done}`;
    case "already":
      return "✅ Nothing to do";
    case "failed":
      return "❌ Failed";
    case "unknown":
      return "❓ Unknown";
    default:
      return hasBegun ? "🚫 Taken back" : "– Not begun";
  }
}
