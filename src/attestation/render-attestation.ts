import type { AttestationReport, Vm } from "../fleet/compute/compute.ts";
import {
  type ButtonSpec,
  buttons,
  context,
  fields,
  firstFew,
  leastForTable,
  List,
  message,
  type Message,
  mostInCell,
  readable,
  roomBeside,
  section,
  table,
  csv,
  duration,
  hintOf,
  lines,
  type Markdown,
  md,
  name,
  plain,
  when,
} from "../messages/message.ts";
import { dayMs } from "../verifier/appraise-evidence.ts";
import type { AttestationResult } from "../verifier/attestation-result.ts";
import { neededWords } from "../verifier/reasons.ts";
import type { Verification } from "../verifier/verification.ts";
import { type Appraisal, evidenceName } from "./appraise.ts";
import type { Attested } from "./appraiser.ts";
import { type NamedVm, short } from "./pins.ts";

/**
 * The signs of the three verdicts, and of what there may be instead of one. The worst comes first.
 */
const signs = {
  failed: "🔴",
  "could not verify": "❔",
  "not read": "❔",
  "attestation off": "⚪",
  verified: "✅",
} as const;
type Rank = keyof typeof signs;
const ranks = Object.keys(signs) as Rank[];

export const capital = (text: string) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
const sentence = (text: string) => `${capital(text)}.`;

/** `4f2a…91bc`: the measurement in the evidence, or else the one that the service reports. */
function shortMeasurement({ measurement: { evidence, report, vm } }: Appraisal): string {
  return short(evidence?.split(",")[0] ?? report ?? vm ?? "");
}

/**
 * Renders one VM: first Gatehouse's own verdict, then the reasons, then what was checked and until
 * when it holds, with what the compute service says next to it. It is made for a phone, so
 * measurements are short; the file has them in full.
 */
export function renderAttestation(
  vm: { name: string },
  appraisal: Appraisal,
  { actions = [], since }: { actions?: readonly ButtonSpec[]; since?: Markdown | undefined } = {},
): Message {
  const { verdict, reasons, notes, wayOut, evidence, validUntil, soon, isAlarm } = appraisal;
  const holds = verdict === "verified" ? validUntil : undefined;
  const headline = md`${signs[verdict]} *${capital(verdict)}*: ${name(vm.name)}`;
  const alarm = isAlarm
    ? md`🚨 A vendor-signed file was altered or forged. Check who can write to the endorsements folder.`
    : undefined;
  const why = reasons.map((reason) => md`• ${sentence(reason)}`);
  return message(
    readable(md`${capital(verdict)}: ${vm.name}. ${reasons.map(sentence).join(" ")}`),
    section(lines(headline, alarm, ...why, hintOf(wayOut && `${wayOut}.`))),
    since && section(since),
    soon ? section(md`⏳ *Fails once Intel's next level counts*: ${sentence(soon)}`) : undefined,
    appraisal.difference ? section(md`*Difference*: ${appraisal.difference}`) : undefined,
    fields([
      evidence === undefined ? undefined : ["Checked by Gatehouse", md`${evidence}`],
      holds === undefined ? undefined : ["Holds until", dayAndTime(holds)],
      ["Measurement", measurementText(appraisal.measurement)],
      ["Pins", pinText(appraisal.measurement)],
      ["The compute service says", serviceText(appraisal.service)],
    ]),
    notes.length > 0 ? context(...notes.map((note) => md`${note}.`)) : undefined,
    buttons(actions),
  );
}

const dayAndTime = (at: number) => when(at, "{date_short_pretty} {time}");

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

/** The service's own statement, which is shown next to our verdict and never replaces it. */
function serviceText({ verified, platform, madeAt, ageMs = 0 }: Appraisal["service"]): Markdown {
  const word = serviceWord(verified) || "nothing of verification";
  const made = madeAt === undefined ? "" : md`, made ${dayAndTime(madeAt)}`;
  const ago = ageMs > 0 ? `, ${duration(ageMs)} ago` : "";
  return md`${word}${platform ? md` · ${platform}` : ""}${made}${ago}`;
}

const serviceWord = (verified: boolean | undefined) =>
  verified === undefined ? "" : verified ? "verified" : "not verified";

/**
 * A note about a VM's attestation after a change. `but` says why the result is bad although the
 * change was made.
 */
export interface AfterNote {
  line: Markdown;
  but?: string;
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
  /** If attestation failed before the change: why, and since when (ms). */
  before?: { reason: string; since: number },
): AfterNote | undefined {
  const { verdict, reasons, measurement, difference, isOff } = appraisal;
  if (isOff) return undefined;
  if (verdict === "failed") {
    const isPin = measurement.matchesPin === false;
    const why = difference ? `Measurement: ${difference}` : capital(reasons.join("; "));
    if (before && before.reason === reasons[0]) {
      const but = isPin ? "its measurement still matches no pin" : "its attestation still fails";
      const since = when(before.since, "{date_short_pretty} {time}");
      return { line: md`🔴 ${why}. It failed before this change, since ${since}.`, but };
    }
    const but = isPin ? "its measurement no longer matches its pin" : "its attestation failed";
    return { line: md`🔴 ${why}.`, but };
  }
  const line =
    verdict === "verified"
      ? md`Attested again: ✅ verified by Gatehouse (measurement ${shortMeasurement(appraisal)})`
      : md`Attestation: ${signs[verdict]} ${verdict} (${reasons[0] ?? ""})`;
  return { line };
}

/** One VM of a fleet: its appraisal, or why it couldn't be read. */
export interface FleetRow {
  vm: NamedVm;
  appraisal: Appraisal | undefined;
  /** The appraisal with everything that it follows from. */
  attested?: Attested;
  /** Why there is no appraisal. */
  unread?: string;
}

const rankOf = ({ appraisal }: FleetRow): Rank => {
  if (!appraisal) return "not read";
  const { verdict, isOff } = appraisal;
  return verdict === "could not verify" && isOff ? "attestation off" : verdict;
};

/** Whole days until a result no longer holds, rounded down. Empty when it isn't verified. */
const daysLeft = ({ appraisal }: FleetRow, now: number): string =>
  appraisal?.validUntil === undefined || appraisal.verdict !== "verified"
    ? ""
    : String(Math.max(0, Math.floor((appraisal.validUntil - now) / dayMs)));

const whyOf = ({ appraisal, unread = "" }: FleetRow): string =>
  appraisal?.reasons.join("; ") ?? unread;

/** At most this many VMs get a line of their own; the others are in the table. */
const maxTold = 15;

/**
 * The VMs that get a line of their own: those that aren't fine, if a table would cut the reason of
 * any of them.
 */
function toldOf(sorted: readonly FleetRow[]): readonly FleetRow[] {
  const some = sorted.filter((row) => !["attestation off", "verified"].includes(rankOf(row)));
  const isCut = some.some((row) => whyOf(row).length > mostInCell);
  return isCut ? some.slice(0, maxTold) : [];
}

/** Renders several VMs as a table for a channel. The file has all of them with full values. */
export function renderFleet(
  words: string,
  rows: readonly FleetRow[],
  now: number,
  {
    file = "All of them, with whole measurements, are in a file in your direct messages.",
    actions = [],
  }: { file?: string; actions?: readonly ButtonSpec[] } = {},
): { message: Message; content: string } {
  const sorted = rows.toSorted(
    (a, b) =>
      ranks.indexOf(rankOf(a)) - ranks.indexOf(rankOf(b)) || a.vm.name.localeCompare(b.vm.name),
  );
  const counts = ranks.flatMap((rank) => {
    const many = sorted.filter((row) => rankOf(row) === rank).length;
    return many === 0 ? [] : [`${signs[rank]} ${many.toLocaleString("en-US")} ${rank}`];
  });
  const head = md`*Attestation of ${plain(words, 100)}*: ${counts.join(", ")}`;
  const waits = waitsIn(sorted);
  const told = toldOf(sorted);
  const cells = sorted.map((row) => [
    row.vm.name,
    `${signs[rankOf(row)]} ${rankOf(row)}`,
    whyOf(row),
    daysLeft(row, now),
    row.appraisal ? shortMeasurement(row.appraisal) : "",
  ]);
  const above = [section(head), ...(waits.length > 0 ? [section(lines(...waits))] : [])];
  const lineRows = told.map((row) =>
    section(md`${signs[rankOf(row)]} *${row.vm.name}*: ${whyOf(row)}`),
  );
  const below = (hasTable: boolean, seen: number) => [
    context(
      md`Checked by Gatehouse.${hasTable ? " Days left: until the vendors' lists and certificates behind a result end." : ""}${seen < sorted.length ? md` ${seen} of ${sorted.length} are shown.` : ""}`,
      md`${file}`,
    ),
    ...buttons(actions),
  ];
  const body = new List(lineRows.length, (many) => {
    const shown = [...above, ...lineRows.slice(0, many)];
    const rest = table(
      `Attestation of ${words}`,
      ["VM", "Result", "Why", "Days left", "Measurement"],
      cells.slice(many),
      Math.max(leastForTable, roomBeside(...shown, ...below(true, 0))),
    );
    return [...shown, rest.block, ...below(rest.block !== undefined, many + rest.shown)];
  });
  return {
    message: message(readable(head), body),
    content: csv([csvHeads, ...sorted.map((row) => csvRow(row, now))]),
  };
}

const maxWaits = 5;

/**
 * One line for each update that VMs wait for on their hosts, with their names. The most frequent
 * comes first.
 */
function waitsIn(rows: readonly FleetRow[]): readonly Markdown[] {
  const waits = rows.flatMap(({ vm, appraisal }) =>
    [...Map.groupBy(appraisal?.result.short ?? [], ({ by }) => by)].map(([by, parts]) => ({
      name: vm.name,
      what: `${by} (${[...new Set(parts.map(neededWords))].join(", ")})`,
    })),
  );
  return [...Map.groupBy(waits, ({ what }) => what)]
    .toSorted(([, a], [, b]) => b.length - a.length)
    .slice(0, maxWaits)
    .map(([what, all]) => {
      const names = all.map((one) => one.name);
      return md`⬆️ *Waiting for ${what}*: ${firstFew(names, 3)}`;
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

/**
 * The raw report as a file for `attestation check` and other verifiers: what the service returned,
 * and the appraisal.
 */
export function reportFile(
  vm: Pick<Vm, "id" | "name" | "attestation">,
  report: AttestationReport,
  { service: _its, ...appraisal }: Appraisal,
  now: number,
): { name: string; content: string } {
  const bare = plain(vm.name, 60).replaceAll(/[^\p{L}\p{N}._-]+/gu, "-");
  const content = {
    vm: { id: vm.id, name: vm.name, attestation: vm.attestation },
    readAt: new Date(now).toISOString(),
    report,
    appraisal,
  };
  return {
    name: `attestation-${bare || "vm"}-${fileTime(now)}.json`,
    content: `${JSON.stringify(content, jsonValue, 2)}\n`,
  };
}

/** A time for a file's name: `2026-03-01T000000Z`. */
export const fileTime = (at: number): string => second(at).replaceAll(":", "");

/** A replacer for `JSON.stringify`, because flags of evidence have 64 bits. */
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
    `${capital(verdict)}: ${reasons.map(({ says }) => says).join("; ")}.`,
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
  const what: [label: string, value: string][] =
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
  if (tcb) what.push(["TCB", `${tcb.status}, of ${tcb.date.slice(0, 10)}`]);
  return [...what, ["signed bytes", `SHA-256 ${digest}`] as const];
}
