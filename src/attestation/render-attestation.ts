import type { AttestationReport, Vm } from "../compute/compute.ts";
import {
  type ButtonSpec,
  buttons,
  context,
  fields,
  message,
  type Message,
  readable,
  section,
} from "../messages/message.ts";
import { duration, hintOf, lines, type Markdown, md, name, plain, when } from "../messages/text.ts";
import type { Appraisal, Verdict } from "./appraisal.ts";
import { shortMeasurement } from "./appraise.ts";
import { short } from "./measurements.ts";

export const verdictSigns: Readonly<Record<Verdict, string>> = {
  verified: "✅",
  failed: "🔴",
  "could not verify": "❔",
};

const words: Readonly<Record<Verdict, string>> = {
  verified: "Verified",
  failed: "Failed",
  "could not verify": "Could not verify",
};

/**
 * Gatehouse's own verdict first, then why, then what was checked and until when it holds; what the compute service says
 * stands beside it. Made for a phone: measurements are short, the file has them whole.
 */
export function renderAttestation(
  vm: { name: string },
  appraisal: Appraisal,
  actions: readonly ButtonSpec[] = [],
): Message {
  const { verdict, reasons, notes, measurement, wayOut, evidence, validUntil } = appraisal;
  const headline = md`${verdictSigns[verdict]} *${words[verdict]}*: ${name(vm.name)}`;
  const why = reasons.map((reason) => md`• ${sentence(reason)}`);
  return message(
    readable(md`${words[verdict]}: ${vm.name}. ${reasons.map(sentence).join(" ")}`),
    section(lines(headline, alarmLine(appraisal), ...why, hintOf(wayOut && `${wayOut}.`))),
    appraisal.soon
      ? section(md`⏳ *Fails once Intel's next level counts*: ${sentence(appraisal.soon)}`)
      : undefined,
    appraisal.difference ? section(md`*Difference*: ${appraisal.difference}`) : undefined,
    fields([
      evidence === undefined ? undefined : ["Checked by Gatehouse", md`${evidence}`],
      validUntil === undefined
        ? undefined
        : ["Holds until", md`${when(validUntil, "{date_short_pretty} {time}")}`],
      ["Measurement", measurementText(appraisal)],
      ["Pins", pinText(measurement)],
      ["The compute service says", serviceText(appraisal.service)],
    ]),
    notes.length > 0 ? context(...notes.map((note) => md`${note}.`)) : undefined,
    buttons(actions),
  );
}

function alarmLine({ isAlarm }: Appraisal): Markdown | undefined {
  return isAlarm
    ? md`🚨 Something that the vendor had signed was changed or forged: look who can write the folder of endorsements.`
    : undefined;
}

/** One line: `✅ verified by Gatehouse (measurement 4f2a…91bc)`. */
export function attestationLine(appraisal: Appraisal): Markdown {
  const { verdict, reasons } = appraisal;
  const measured = shortMeasurement(appraisal);
  if (verdict === "verified")
    return md`${verdictSigns[verdict]} verified by Gatehouse${measured ? ` (measurement ${measured})` : ""}`;
  return md`${verdictSigns[verdict]} ${verdict} (${reasons[0] ?? ""})`;
}

function measurementText({ measurement }: Appraisal): Markdown {
  const { evidence, report, matchesVm } = measurement;
  const [first] = evidence?.split(",") ?? [report];
  if (first === undefined) return md`not reported`;
  const compared =
    matchesVm === undefined
      ? "not on the VM's record"
      : matchesVm
        ? "as on the VM"
        : "not the VM's";
  return md`${name(short(first))} ${compared}`;
}

function pinText({ pins, pinDoubt, matchesPin }: Appraisal["measurement"]): Markdown {
  if (pinDoubt !== undefined)
    return pinDoubt === "waits" ? md`waits to be sealed` : md`not kept by Gatehouse`;
  if (pins.length === 0) return md`none set`;
  const shown = pins.slice(0, 3).map((pin) => name(short(pin.split(",")[0] ?? "")));
  const listed = shown.reduce((all, pin) => md`${all} ${pin}`);
  const more = pins.length > 3 ? ` and ${pins.length - 3} more` : "";
  const compared = matchesPin === undefined ? "" : matchesPin ? ": matches" : ": no match";
  return md`${listed}${more}${compared}`;
}

/** Its word, beside ours and never above it. */
function serviceText({ verified, platform, madeAt, ageMs = 0 }: Appraisal["service"]): Markdown {
  const word =
    verified === undefined ? "nothing of verification" : verified ? "verified" : "not verified";
  const at = madeAt === undefined ? undefined : when(madeAt, "{date_short_pretty} {time}");
  const made = at && (ageMs > 0 ? md`, made ${at}, ${duration(ageMs)} ago` : md`, made ${at}`);
  return md`${word}${platform ? md` · ${platform}` : ""}${made ?? ""}`;
}

const sentence = (text: string) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;

/** What a result says about attestation after a VM was started, restarted, resized or restored. */
interface AfterChange {
  line: Markdown;
  /** The result is red, and the operators are mentioned: what runs now is not what policy allows. */
  isAlarm: boolean;
}

/**
 * Pass an appraisal made with `notBefore`, the moment of the change: a report from before proves nothing about what runs
 * now. A failure is an alarm; that nothing could be verified yet is said, and alarms nobody. Undefined when attestation
 * is off for the VM and nothing asks for it.
 */
export function afterChange(appraisal: Appraisal): AfterChange | undefined {
  if (appraisal.isOff) return undefined;
  const line = attestationLine(appraisal);
  if (appraisal.verdict === "verified")
    return { line: md`Attested again: ${line}`, isAlarm: false };
  if (appraisal.verdict !== "failed") return { line: md`Attestation: ${line}`, isAlarm: false };
  const what =
    appraisal.measurement.matchesPin === false
      ? md`🔴 *The measurement no longer matches its pin.*`
      : md`🔴 *Attestation failed after this change.*`;
  const detail = appraisal.difference ?? appraisal.reasons.join("; ");
  return { line: lines(what, md`${detail}`), isAlarm: true };
}

/** The raw report as a file, for `attestation check` and other verifiers: what the service gave, and what was made of it. */
export function reportFile(
  vm: Pick<Vm, "id" | "name" | "attestation">,
  report: AttestationReport,
  { service: _its, ...appraisal }: Appraisal,
  now: number,
): { name: string; content: string } {
  const day = new Date(now).toISOString().replaceAll(/[:]|\.\d+/g, "");
  const bare = plain(vm.name, 60).replaceAll(/[^\p{L}\p{N}._-]+/gu, "-");
  const content = {
    vm: { id: vm.id, name: vm.name, attestation: vm.attestation },
    readAt: new Date(now).toISOString(),
    report,
    appraisal,
  };
  return {
    name: `attestation-${bare || "vm"}-${day}.json`,
    content: `${JSON.stringify(content, jsonValue, 2)}\n`,
  };
}

/** For `JSON.stringify`: flags of evidence are 64 bits. */
export const jsonValue = (_key: string, value: unknown): unknown =>
  typeof value === "bigint" ? `0x${value.toString(16)}` : value;
