import type { Campaign } from "./campaign.ts";
import { isKept, lineOf } from "./checker.ts";
import { leavesNoTrace } from "./plan.ts";
import { quantile } from "./recovery.ts";
import type { Outcome } from "./row.ts";
import { faultyShare } from "./weather.ts";

export type Result = "holds" | "BROKEN" | "not run";

/** A line of the published table. */
export interface Line {
  id: string;
  what: string;
  result: Result;
  note: string;
  seconds: number;
}

/** After kill -9, requests in hand must have moved on within (reliability.md section 7). */
export const mostRecoveryMs = 15_000;

export function resultOf(outcome: Outcome): Result {
  if (outcome.notRun !== undefined) return "not run";
  return outcome.holds ? "holds" : "BROKEN";
}

/** What was wrong with a campaign; nothing when it holds. */
export function complaintsOf({ verdict, crashes, frozen }: Campaign): string[] {
  const unexpected = Object.entries(verdict.ends).filter(
    ([end]) => end.endsWith(" unknown") && !leavesNoTrace(end.replace(/ unknown$/, "")),
  );
  return [
    ...(isKept(verdict, { mayBeUnknown: true }) ? [] : verdict.findings.slice(0, 20)),
    ...unexpected.map(([end, count]) => `${count} times ${end}`),
    ...crashes,
    ...(frozen === undefined ? [] : [`frozen: ${frozen}`]),
  ];
}

/** What a campaign did, line by line. */
export function tellCampaign(campaign: Campaign): string[] {
  const { verdict, calls, answers } = campaign;
  const share = Math.round((100 * calls.struck) / Math.max(1, calls.changes));
  return [
    `${campaign.kills} kills, ${campaign.freezes} freezes; ${calls.struck} of ${calls.changes} changing calls struck (${share} %)`,
    `${answers.approvals} approved, ${answers.denials} denied, ${answers.unanswered} left without an answer, ${campaign.refused} refused by their dialog`,
    ...Object.entries(verdict.ends)
      .toSorted(([a], [b]) => a.localeCompare(b))
      .map(([end, count]) => `${end}: ${count}`),
  ];
}

export function campaignLine(campaign: Campaign): Line {
  const { verdict, seconds } = campaign;
  return {
    id: "campaign",
    what: `${verdict.operations} requests of all commands, ${Math.round(faultyShare() * 100)} % of calls faulty`,
    result: complaintsOf(campaign).length === 0 ? "holds" : "BROKEN",
    note: lineOf(verdict),
    seconds,
  };
}

export function recoveryLine(recoveries: readonly number[]): Line {
  const [half, most] = [quantile(recoveries, 0.5), quantile(recoveries, 0.95)];
  return {
    id: "recovery",
    what: "after kill -9: until another process moved the request on, its start included",
    result: most < mostRecoveryMs ? "holds" : "BROKEN",
    note: `${recoveries.length} requests: p50 ${seconds(half)}, p95 ${seconds(most)}`,
    seconds: 0,
  };
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

/** As Markdown. */
export function renderTable(lines: readonly Line[]): string {
  const rows = lines.map(
    ({ id, what, result, note, seconds: took }) =>
      `| ${id} | ${cell(what)} | ${result} | ${cell(note)} | ${took.toFixed(0)} s |`,
  );
  return [
    "| row | fault | result | seen | took |",
    "| --- | --- | --- | --- | --- |",
    ...rows,
  ].join("\n");
}

const cell = (text: string) => text.replaceAll("|", "·").replaceAll("\n", " ").slice(0, 200);
