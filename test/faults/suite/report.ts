import type { Campaign } from "../campaign/campaign.ts";
import { faultyShare } from "../campaign/weather.ts";
import { isKept, lineOf, tooUnknown } from "../check/checker.ts";
import { quantile } from "../check/recovery.ts";
import type { Outcome } from "../rows/row.ts";
import type { Done } from "./jobs.ts";

export type Result = "holds" | "BROKEN" | "not run";

/** A line of the table that a run prints. */
export interface Line {
  id: string;
  result: Result;
  seen: string;
  seconds: number;
  /** What docs/faults.md lists of it instead: it holds with nothing counted but outcomes that may be unknown, or with nothing to count. */
  listed?: { as: "zero" | "unknown" | "not judged"; item: string };
}

/** After kill -9, requests in hand must have moved on within (ms, 95th percentile). */
export const mostRecoveryMs = 15_000;

function resultOf(outcome: Outcome): Result {
  if (outcome.notRun !== undefined) return "not run";
  return outcome.holds ? "holds" : "BROKEN";
}

export function rowLine({ row, outcome, seconds: took }: Done): Line {
  const { verdict, notRun, notes } = outcome;
  const seen = verdict ? lineOf(verdict) : (notRun ?? notes[0] ?? "");
  const line = { id: row.id, result: resultOf(outcome), seen, seconds: took };
  if (line.result !== "holds") return line;
  if (!verdict) return { ...line, listed: { as: "not judged", item: row.id } };
  if (!isKept(verdict, "any")) return line;
  if (verdict.unknown === 0) return { ...line, listed: { as: "zero", item: row.id } };
  const item = `${row.id} ${verdict.unknown} of ${verdict.operations}`;
  return { ...line, listed: { as: "unknown", item } };
}

/** What was wrong with a campaign; nothing when it holds. */
export function complaintsOf({ verdict, crashes, frozen }: Campaign): string[] {
  return [
    ...(isKept(verdict, "no trace") ? [] : verdict.findings.slice(0, 20)),
    ...tooUnknown(verdict, "no trace"),
    ...crashes,
    ...(frozen === undefined ? [] : [`frozen: ${frozen}`]),
  ];
}

/** What a campaign did, line by line. */
export function tellCampaign(campaign: Campaign): string[] {
  const { verdict, calls, answers } = campaign;
  const share = Math.round((100 * calls.struck) / Math.max(1, calls.changes));
  return [
    `${campaign.kills} kills, ${campaign.freezes} freezes; ${calls.struck} of ${calls.changes} changing calls struck (${share}%)`,
    `${answers.approvals} approved, ${answers.denials} denied, ${answers.unanswered} left without an answer, ${campaign.refused} refused by their dialog`,
    ...tellEnds(verdict.ends),
  ];
}

/** How the requests of each command ended, a line for each. */
function tellEnds(ends: Readonly<Record<string, number>>): string[] {
  const ofCommand = new Map<string, string[]>();
  for (const [end, count] of Object.entries(ends).toSorted(([a], [b]) => a.localeCompare(b))) {
    const [, command = end, state = ""] = /^(\S+ \S+) (.*)$/.exec(end) ?? [];
    ofCommand.set(command, [...(ofCommand.get(command) ?? []), `${count} ${state}`]);
  }
  return [...ofCommand].map(([command, states]) => `${command}: ${states.join(", ")}`);
}

export function campaignLine(campaign: Campaign): Line {
  const { verdict, seconds: took } = campaign;
  const what = `requests of all commands, ${Math.round(faultyShare() * 100)} % of calls faulty`;
  return {
    id: "campaign",
    result: complaintsOf(campaign).length === 0 ? "holds" : "BROKEN",
    seen: `${what}: ${lineOf(verdict)}`,
    seconds: took,
  };
}

export function recoveryLine(recoveries: readonly number[]): Line {
  const [half, most] = [quantile(recoveries, 0.5), quantile(recoveries, 0.95)];
  const what = "after kill -9 until another process moved the request on, its start included";
  return {
    id: "recovery",
    result: most < mostRecoveryMs ? "holds" : "BROKEN",
    seen: `${what}: ${recoveries.length} requests, p50 ${seconds(half)}, p95 ${seconds(most)}`,
    seconds: 0,
  };
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

/** What docs/faults.md says of a run: what needs no word, in three lists, and the rest as a table, without counts of zero. */
export function renderRun(lines: readonly Line[]): string {
  const list = (what: string, as: string) => {
    const items = lines.flatMap(({ listed }) => (listed?.as === as ? [listed.item] : []));
    return items.length > 0 ? [`${what}: ${items.join(", ")}.`] : [];
  };
  const rest = lines
    .filter(({ listed }) => listed === undefined)
    .map(({ id, result, seen }) => `| ${id} | ${result} | ${cell(briefly(seen)).slice(0, 280)} |`);
  return [
    ...list("Hold with every count at zero", "zero"),
    ...list("Hold, with outcomes left to a person (of so many requests)", "unknown"),
    ...list("Hold, not judged by the checker", "not judged"),
    "The others, with the counts that aren't zero:",
    ["| row | result | seen |", "| --- | --- | --- |", ...rest].join("\n"),
  ].join("\n\n");
}

const briefly = (seen: string) =>
  seen
    .replaceAll(/ \| [a-z ]+ 0(?= \||$)/g, "")
    .replace(/(\d+) operations, (\d+) faults/, "$1/$2")
    .replaceAll(" | ", ", ");

/** As Markdown. */
export function renderTable(lines: readonly Line[]): string {
  const rows = lines.map(
    ({ id, result, seen, seconds: took }) =>
      `| ${id} | ${result} | ${cell(seen).slice(0, 280)} | ${took.toFixed(0)} s |`,
  );
  return ["| row | result | seen | took |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

const cell = (text: string) => text.replaceAll("|", "·").replaceAll("\n", " ");
