import { md, type Markdown, timeNear } from "../messages/markdown.ts";
import type { AttestationResult } from "../verifier/attestation-result.ts";
import type { Verification } from "../verifier/verification.ts";
import { type Appraisal, type Verdict, evidenceName, failureMark } from "./appraise.ts";
import { short } from "./pins.ts";
import { upperFirst } from "../text/letter-case.ts";

export const verdictSigns = {
  failed: "🔴",
  "could not verify": "❔",
  verified: "✅",
} as const satisfies Record<Verdict, string>;

/** `4f2a…91bc`, of the evidence, or else of what the service names. */
export function shortMeasurement({ measurement: { evidence, report, vm } }: Appraisal): string {
  return short(evidence?.split(",")[0] ?? report ?? vm ?? "");
}

/** What is known of a VM after a change. `but`: why its sign is red, although the change was made. */
export interface AfterNote {
  line: Markdown;
  but?: string;
  /** The failure that the note tells. `isNew`: it wasn't known before the change. */
  failure?: { mark: string; isNew: boolean };
}

/**
 * The note about attestation after a VM was started, restarted, resized, or restored. Pass an
 * appraisal made with `notBefore`, the moment of the change, because an earlier report proves
 * nothing about what runs now. For a failure, `but` is the end of a sentence about the change, and
 * the operators are mentioned, because what runs now isn't what the policy allows. When nothing
 * could be verified yet, the note says so without alarming anyone. A failure from before the change
 * isn't attributed to it. Undefined when attestation is off for the VM and nothing requires it.
 */
export function afterChange(
  appraisal: Appraisal,
  /** If attestation failed before the change: why, since when, and when the change was made (ms). */
  before?: { reason: string; since: number; changedAt: number },
): AfterNote | undefined {
  const { verdict, reasons, measurement, difference, isOff } = appraisal;
  if (isOff) return undefined;
  if (verdict === "failed") {
    const isPin = measurement.matchesPin === false;
    const mark = failureMark(appraisal);
    const why = difference ? `Measurement: ${difference}` : upperFirst(reasons.join("; "));
    if (before && before.reason === reasons[0]) {
      const but = isPin ? "its measurement still matches no pin" : "its attestation still fails";
      const since = timeNear(before.since, before.changedAt);
      const line = md`🔴 ${why}. It has failed since ${since}, before this change.`;
      return { line, but, failure: { mark, isNew: false } };
    }
    const but = isPin ? "its measurement no longer matches its pin" : "its attestation failed";
    return { line: md`🔴 ${why}.`, but, failure: { mark, isNew: true } };
  }
  const line =
    verdict === "verified"
      ? md`Attested again: ✅ verified by Gatehouse (measurement ${shortMeasurement(appraisal)})`
      : md`Attestation: ${verdictSigns[verdict]} ${verdict} (${reasons[0] ?? ""})`;
  return { line };
}

/** For `JSON.stringify`: flags of evidence are 64 bits. */
export const jsonValue = (_key: string, value: unknown): unknown =>
  typeof value === "bigint" ? `0x${value.toString(16)}` : value;

const claimWords: Readonly<Record<number, string>> = {
  0: "nothing is known",
  2: "affirmed",
  3: "affirmed: pinned",
  32: "warning",
  33: "warning: not recognized",
  36: "warning",
  96: "contradicted",
  99: "contradicted: a signature does not hold",
};

/** A time for a terminal: `2026-03-01T00:00:00Z`. */
export const second = (at: number): string => new Date(at).toISOString().replace(/\.\d+Z$/, "Z");

const terminalRow = (label: string, value: string) => `  ${label.padEnd(19)}${value}`;

/** A result for a terminal, the verdict first. */
export function resultLines(
  { verdict, claims, reasons, notes, isAlarm, verification }: AttestationResult,
  { at, absent = [] }: { at: number; absent?: readonly string[] },
): readonly string[] {
  const { validity } = verification.is === "authentic" ? verification : {};
  const held = validity && `${second(validity.from)} to ${second(validity.until)}`;
  return [
    `${upperFirst(verdict)}: ${reasons.map(({ says }) => says).join("; ")}.`,
    ...(isAlarm ? ["ALARM: a vendor-signed file was altered or forged."] : []),
    ...factRows(verification).map(([label, value]) => terminalRow(label, value)),
    ...Object.entries({ ...claims }).map(([claim, value]) =>
      terminalRow(claim.replace("Identity", " identity"), `${value}, ${claimWords[value]}`),
    ),
    ...(held === undefined ? [] : [terminalRow("holds", held)]),
    terminalRow("checked at", second(at)),
    ...absent.map((file) => `Missing in the folder of endorsements: ${file}`),
    ...notes.map((note) => `Note: ${note}`),
  ];
}

function factRows({ facts, tcb, product, digest = "" }: Verification) {
  if (!facts) return [];
  const kind = evidenceName(facts, product ?? "unknown");
  const evidenceRows: [label: string, value: string][] =
    facts.tee === "tdx"
      ? [
          ["evidence", `${kind}, ${facts.body}`],
          ["MRTD", facts.mrTd],
          ...facts.rtmr.map((value, at): [string, string] => [`RTMR${at}`, value]),
        ]
      : [
          ["evidence", kind],
          ["MEASUREMENT", facts.measurement],
          ["report ID", facts.reportId],
        ];
  if (tcb) evidenceRows.push(["TCB", `${tcb.status}, of ${tcb.date.slice(0, 10)}`]);
  return [...evidenceRows, ["signed bytes", `SHA-256 ${digest}`] as const];
}
