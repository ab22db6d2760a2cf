import type { Appraisal } from "../../attestation/appraise.ts";
import type { BundledVm } from "../../attestation/bundle.ts";
import { short } from "../../attestation/pins.ts";
import {
  jsonValue,
  second,
  shortMeasurement,
  verdictSigns,
} from "../../attestation/render-attestation.ts";
import { compareNames } from "../../text/compare-names.ts";
import type { AttestationReport, Vm } from "../../fleet/compute/compute.ts";
import { type Message } from "../../messages/blocks.ts";
import { pairsOf, paragraph, small, waysRow } from "../../messages/parts.ts";
import { type ButtonSpec } from "../../messages/buttons.ts";
import { leastForTable, List, roomBeside, card } from "../../messages/card.ts";
import { csv } from "../../messages/csv.ts";
import {
  firstFew,
  duration,
  hintOf,
  lines,
  type Markdown,
  md,
  name,
  plain,
  dayAndTime,
} from "../../messages/markdown.ts";
import { mostInCell, table } from "../../messages/table.ts";
import { dayMs } from "../../verifier/appraise-evidence.ts";
import { neededWords } from "../../verifier/reasons.ts";
import { wayOut } from "./way-out.ts";
import { upperFirst } from "../../text/letter-case.ts";

/** The three verdicts, and what there is in place of one; the worst first. */
const signs = {
  failed: verdictSigns.failed,
  "could not verify": verdictSigns["could not verify"],
  "not read": "❔",
  "attestation off": "⚪",
  verified: verdictSigns.verified,
} as const;
type Rank = keyof typeof signs;
const ranks = Object.keys(signs) as Rank[];

const sentence = (text: string) => `${upperFirst(text)}.`;

/**
 * One VM: Gatehouse's own verdict first, then why, then what was checked and until when it holds; what the compute service says
 * stands beside it. Made for a phone: measurements are short, the file has them whole.
 */
export function renderAttestation(
  vm: { name: string },
  appraisal: Appraisal,
  { actions = [], since }: { actions?: readonly ButtonSpec[]; since?: Markdown | undefined } = {},
): Message {
  const { verdict, reasons, notes, evidence, validUntil, soon, isAlarm } = appraisal;
  const way = wayOut(appraisal);
  const holds = verdict === "verified" ? validUntil : undefined;
  const alarm = isAlarm
    ? md`🚨 A vendor-signed file was altered or forged. Check who can write to the endorsements folder.`
    : undefined;
  const why = reasons.map((reason) => md`• ${sentence(reason)}`);
  return card({
    sign: signs[verdict],
    title: md`*${upperFirst(verdict)}*: ${name(vm.name)}`,
    push: md`${upperFirst(verdict)}: ${vm.name}. ${reasons.map(sentence).join(" ")}`,
    lines: [alarm, ...why, hintOf(way && `${way}.`)],
    body: [
      since && paragraph(since),
      soon
        ? paragraph(md`⏳ *Fails once Intel's next level counts*: ${sentence(soon)}`)
        : undefined,
      appraisal.difference ? paragraph(md`*Difference*: ${appraisal.difference}`) : undefined,
      pairsOf([
        evidence === undefined ? undefined : ["Checked by Gatehouse", md`${evidence}`],
        holds === undefined ? undefined : ["Holds until", dayAndTime(holds)],
        ["Measurement", measurementText(appraisal.measurement)],
        ["Pins", pinText(appraisal.measurement)],
        ["The compute service says", serviceText(appraisal.service)],
      ]),
      notes.length > 0 ? small(...notes.map((note) => md`${note}.`)) : undefined,
    ],
    ways: actions,
  });
}

function measurementText({ evidence, report, matchesVm }: Appraisal["measurement"]): Markdown {
  const [first] = evidence?.split(",") ?? [report];
  if (first === undefined) return md`not reported`;
  const record = matchesVm ? "as on the VM" : "not the VM's";
  return md`${name(short(first))} ${matchesVm === undefined ? "not on the VM's record" : record}`;
}

function pinText({ pins, pinDoubt, matchesPin }: Appraisal["measurement"]): Markdown {
  if (pinDoubt !== undefined)
    return pinDoubt === "waits" ? md`waits to be sealed` : md`not kept by Gatehouse`;
  if (pins.length === 0) return md`none set`;
  const more = pins.length > 1 ? ` and ${pins.length - 1} more` : "";
  const compared = matchesPin === undefined ? "" : matchesPin ? ": matches" : ": no match";
  return md`${name(short(pins[0]?.split(",")[0] ?? ""))}${more}${compared}`;
}

/** Its word, beside ours and never above it. */
function serviceText({ verified, platform, madeAt, ageMs = 0 }: Appraisal["service"]): Markdown {
  const word = serviceWord(verified) || "nothing of verification";
  const made = madeAt === undefined ? "" : md`, made ${dayAndTime(madeAt)}`;
  const ago = ageMs > 0 ? `, ${duration(ageMs)} ago` : "";
  return md`${word}${platform ? md` · ${platform}` : ""}${made}${ago}`;
}

const serviceWord = (verified: boolean | undefined) =>
  verified === undefined ? "" : verified ? "verified" : "not verified";

/** One VM of a fleet: judged, or why it could not even be read. */
export interface FleetRow extends BundledVm {
  appraisal: Appraisal | undefined;
}

const rankOf = ({ appraisal }: FleetRow): Rank => {
  if (!appraisal) return "not read";
  const { verdict, isOff } = appraisal;
  return verdict === "could not verify" && isOff ? "attestation off" : verdict;
};

/** Whole days until a result no longer holds, rounded down. */
const daysLeft = ({ appraisal }: FleetRow, now: number): string =>
  appraisal?.validUntil === undefined || appraisal.verdict !== "verified"
    ? ""
    : String(Math.max(0, Math.floor((appraisal.validUntil - now) / dayMs)));

const whyOf = ({ appraisal, unread = "" }: FleetRow): string =>
  appraisal?.reasons.join("; ") ?? unread;

/** The rest stands in the table. */
const maxTold = 15;

/** A line each of those that aren't fine, where a table would cut why of any of them. */
function toldOf(sorted: readonly FleetRow[]): readonly FleetRow[] {
  const some = sorted.filter((row) => !["attestation off", "verified"].includes(rankOf(row)));
  const isCut = some.some((row) => whyOf(row).length > mostInCell);
  return isCut ? some.slice(0, maxTold) : [];
}

/**
 * Several VMs: a table for a channel, and all of them with whole values for a file. `file` says what
 * the file has that was sent with it.
 */
export function renderFleet(
  words: string,
  rows: readonly FleetRow[],
  now: number,
  { file = "", actions = [] }: { file?: string; actions?: readonly ButtonSpec[] } = {},
): { message: Message; content: string } {
  const sorted = rows.toSorted(
    (a, b) =>
      ranks.indexOf(rankOf(a)) - ranks.indexOf(rankOf(b)) || compareNames(a.vm.name, b.vm.name),
  );
  const counts = ranks.flatMap((rank) => {
    const many = sorted.filter((row) => rankOf(row) === rank).length;
    return many === 0 ? [] : [`${signs[rank]} ${many.toLocaleString("en-US")} ${rank}`];
  });
  const head = md`*Attestation of ${plain(words, 100)}*: ${counts.join(", ")}`;
  const waits = waitsIn(sorted);
  const rowsWithLines = toldOf(sorted);
  const cells = sorted.map((row) => [
    `${signs[rankOf(row)]} ${row.vm.name}`,
    rankOf(row),
    whyOf(row),
    daysLeft(row, now),
    row.appraisal ? shortMeasurement(row.appraisal) : "",
  ]);
  const above = [paragraph(head), ...(waits.length > 0 ? [paragraph(lines(...waits))] : [])];
  const lineRows = rowsWithLines.map((row) =>
    paragraph(md`${signs[rankOf(row)]} *${row.vm.name}*: ${whyOf(row)}`),
  );
  const below = (hasTable: boolean, seen: number) => [
    small(
      md`Checked by Gatehouse.${hasTable ? " Days left: until the vendors' lists and certificates behind a result end." : ""}${seen < sorted.length ? md` ${seen} of ${sorted.length} are shown.` : ""}`,
      ...(file === "" ? [] : [md`${file}`]),
    ),
    waysRow(actions),
  ];
  const body = new List(lineRows.length, (many) => {
    const shown = [...above, ...lineRows.slice(0, many)];
    const rest = table(
      `Attestation of ${words}`,
      ["VM", "Result", "Why", "Days left", "Measurement"],
      cells.slice(many),
      Math.max(leastForTable, roomBeside(...shown, ...below(true, 0))),
    );
    return [...shown, rest.part, ...below(rest.part !== undefined, many + rest.shown)];
  });
  return {
    message: card({ push: head, body: [body] }),
    content: csv([csvHeads, ...sorted.map((row) => csvRow(row, now))]),
  };
}

const maxWaits = 5;

/** The VMs that wait for the same update of their hosts, in one line for each update; most first. */
function waitsIn(rows: readonly FleetRow[]): readonly Markdown[] {
  const waits = rows.flatMap(({ vm, appraisal }) =>
    [...Map.groupBy(appraisal?.result.short ?? [], ({ by: updateTarget }) => updateTarget)].map(
      ([updateTarget, parts]) => ({
        name: vm.name,
        update: `${updateTarget} (${[...new Set(parts.map(neededWords))].join(", ")})`,
      }),
    ),
  );
  return [...Map.groupBy(waits, ({ update }) => update)]
    .toSorted(([, a], [, b]) => b.length - a.length)
    .slice(0, maxWaits)
    .map(([update, all]) => {
      const names = all.map((wait) => wait.name);
      return md`⬆️ *Waiting for ${update}*: ${firstFew(names, 3)}`;
    });
}

const csvHeads =
  "vm,project,id,result,why,days left,holds until,measurement,service says,evidence,sha256 of signed bytes".split(
    ",",
  );

function csvRow(row: FleetRow, now: number): readonly string[] {
  const { vm, appraisal } = row;
  const { validUntil, measurement, service, evidence = "", result } = appraisal ?? {};
  return [
    vm.name,
    vm.projectName ?? vm.projectId,
    vm.id,
    rankOf(row),
    whyOf(row),
    daysLeft(row, now),
    validUntil === undefined ? "" : new Date(validUntil).toISOString(),
    measurement?.evidence ?? measurement?.report ?? "",
    serviceWord(service?.verified),
    evidence,
    result?.verification.digest ?? "",
  ];
}

/** The raw report as a file, for `attestation check` and other verifiers: what the service gave, and what was made of it. */
export function reportFile(
  vm: Pick<Vm, "id" | "name" | "attestation">,
  report: AttestationReport,
  whole: Appraisal,
  now: number,
): { name: string; content: string } {
  const { service: _its, codes: _inReasons, absent: _inWayOut, ...appraisal } = whole;
  const bare = plain(vm.name, 60).replaceAll(/[^\p{L}\p{N}._-]+/gu, "-");
  const content = {
    vm: { id: vm.id, name: vm.name, attestation: vm.attestation },
    readAt: new Date(now).toISOString(),
    report,
    appraisal: { ...appraisal, wayOut: wayOut(whole) },
  };
  return {
    name: `attestation-${bare || "vm"}-${fileTime(now)}.json`,
    content: `${JSON.stringify(content, jsonValue, 2)}\n`,
  };
}

/** For the name of a file: `2026-03-01T000000Z`. */
export const fileTime = (at: number): string => second(at).replaceAll(":", "");
