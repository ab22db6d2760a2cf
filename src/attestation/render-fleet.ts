import {
  type ButtonSpec,
  buttons,
  context,
  message,
  type Message,
  readable,
  section,
  table,
} from "../messages/message.ts";
import { csv, md, plain } from "../messages/text.ts";
import type { Appraisal } from "./appraisal.ts";
import { shortMeasurement } from "./appraise.ts";
import type { Attested } from "./appraiser.ts";
import type { NamedVm } from "./pins.ts";
import { verdictSigns } from "./render-attestation.ts";

/** One VM of a fleet: judged, or why it could not even be read. */
export interface FleetRow {
  vm: NamedVm;
  appraisal: Appraisal | undefined;
  /** With all that it follows from. */
  attested?: Attested;
  /** Why there is no appraisal. */
  unread?: string;
}

/** The worst first. */
const ranks = ["failed", "could not verify", "not read", "attestation off", "verified"] as const;
type Rank = (typeof ranks)[number];

const rankOf = ({ appraisal }: FleetRow): Rank =>
  appraisal === undefined
    ? "not read"
    : appraisal.verdict === "could not verify" && appraisal.isOff
      ? "attestation off"
      : appraisal.verdict;

const signs: Readonly<Record<Rank, string>> = {
  ...verdictSigns,
  "not read": "❔",
  "attestation off": "⚪",
};

const dayMs = 86_400_000;

/** Whole days until a result no longer holds, rounded down. */
const daysLeft = ({ appraisal }: FleetRow, now: number): string =>
  appraisal?.validUntil === undefined
    ? ""
    : String(Math.max(0, Math.floor((appraisal.validUntil - now) / dayMs)));

const whyOf = ({ appraisal, unread = "" }: FleetRow): string =>
  appraisal === undefined ? unread : appraisal.reasons.join("; ");

export function worstFirst(rows: readonly FleetRow[]): readonly FleetRow[] {
  return rows.toSorted(
    (a, b) =>
      ranks.indexOf(rankOf(a)) - ranks.indexOf(rankOf(b)) || a.vm.name.localeCompare(b.vm.name),
  );
}

/** A table for a channel; the file has all of them with whole values. */
export function renderFleet(
  words: string,
  rows: readonly FleetRow[],
  now: number,
  {
    file = "All of them, with whole measurements, are in a file in your direct messages.",
    actions = [],
  }: { file?: string; actions?: readonly ButtonSpec[] } = {},
): { message: Message; content: string } {
  const sorted = worstFirst(rows);
  const counts = ranks.flatMap((rank) => {
    const many = sorted.filter((row) => rankOf(row) === rank).length;
    return many === 0 ? [] : [`${signs[rank]} ${many.toLocaleString("en-US")} ${rank}`];
  });
  const head = md`*Attestation of ${plain(words, 100)}*: ${counts.join(", ")}`;
  const { block, shown } = table(
    `Attestation of ${words}`,
    ["VM", "Result", "Why", "Days left", "Measurement"],
    sorted.map((row) => [
      row.vm.name,
      `${signs[rankOf(row)]} ${rankOf(row)}`,
      plain(whyOf(row), 120),
      daysLeft(row, now),
      (row.appraisal && shortMeasurement(row.appraisal)) ?? "",
    ]),
  );
  return {
    message: message(
      readable(head),
      section(head),
      block,
      context(
        md`Checked by Gatehouse. Days left: until the vendors' lists and certificates behind a result end.${shown < sorted.length ? md` ${shown} of ${sorted.length} are shown.` : ""}`,
        md`${file}`,
      ),
      buttons(actions),
    ),
    content: csv([
      [
        "vm",
        "project",
        "id",
        "result",
        "why",
        "days left",
        "holds until",
        "measurement",
        "service says",
        "evidence",
        "sha256 of signed bytes",
      ],
      ...sorted.map((row) => csvRow(row, now)),
    ]),
  };
}

function csvRow(row: FleetRow, now: number): readonly string[] {
  const { vm, appraisal } = row;
  const { verified } = appraisal?.service ?? {};
  const until = appraisal?.validUntil;
  return [
    vm.name,
    vm.projectName ?? vm.projectId,
    vm.id,
    rankOf(row),
    whyOf(row),
    daysLeft(row, now),
    until === undefined ? "" : new Date(until).toISOString(),
    appraisal?.measurement.evidence ?? appraisal?.measurement.report ?? "",
    verified === undefined ? "" : verified ? "verified" : "not verified",
    appraisal?.evidence ?? "",
    appraisal?.result?.verification.digest ?? "",
  ];
}
