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
import { duration, lines, type Markdown, md, name, when, plain } from "../messages/text.ts";
import { type Appraisal, shortMeasurement, type Verdict } from "./appraise.ts";
import { short } from "./evidence.ts";
import type { AttestationReport, Vm } from "../compute/compute.ts";

const symbols: Readonly<Record<Verdict, string>> = {
  verified: "✅",
  failed: "🔴",
  "could not verify": "❔",
};

const words: Readonly<Record<Verdict, string>> = {
  verified: "Reported as verified",
  failed: "Failed",
  "could not verify": "Could not verify",
};

/** The verdict first, then why, then what was compared. Made for a phone: measurements are short, the file has them whole. */
export function renderAttestation(
  vm: { name: string },
  appraisal: Appraisal,
  actions: readonly ButtonSpec[] = [],
): Message {
  const { verdict, reasons, notes, measurement } = appraisal;
  const headline = md`${symbols[verdict]} *${words[verdict]}*: ${name(vm.name)}`;
  const why = reasons.map((reason) => md`• ${sentence(reason)}`);
  return message(
    readable(md`${words[verdict]}: ${vm.name}. ${reasons.map(sentence).join(" ")}`),
    section(lines(headline, ...why)),
    appraisal.difference ? section(md`*Difference*: ${appraisal.difference}`) : undefined,
    fields([
      ["Measurement", measurementText(measurement.report, measurement.matchesVm)],
      ["Pins", pinText(measurement)],
      appraisal.platform ? ["Platform", md`${appraisal.platform}`] : undefined,
      appraisal.madeAt === undefined ? undefined : ["Report made", ageText(appraisal)],
    ]),
    context(...notes.map((note) => md`${note}.`)),
    buttons(actions),
  );
}

/** One line: `✅ Attested: verified (measurement 4f2a…91bc)`. */
function attestationLine(appraisal: Appraisal): Markdown {
  const { verdict, reasons } = appraisal;
  const measured = shortMeasurement(appraisal);
  const [reason = ""] = reasons;
  const detail = verdict === "verified" ? measured && `measurement ${measured}` : reason;
  return md`${symbols[verdict]} ${verdict}${detail ? ` (${detail})` : ""}`;
}

function measurementText(
  measurement: string | undefined,
  matchesVm: boolean | undefined,
): Markdown {
  if (measurement === undefined) return md`not reported`;
  const compared =
    matchesVm === undefined
      ? "not on the VM's record"
      : matchesVm
        ? "as on the VM"
        : "not the VM's";
  return md`${name(short(measurement))} ${compared}`;
}

function pinText({ pins, matchesPin }: Appraisal["measurement"]): Markdown {
  if (pins.length === 0) return md`none set`;
  const shown = pins.slice(0, 3).map((pin) => name(short(pin)));
  const listed = shown.reduce((all, pin) => md`${all} ${pin}`);
  const more = pins.length > 3 ? ` and ${pins.length - 3} more` : "";
  const compared = matchesPin === undefined ? "" : matchesPin ? ": matches" : ": no match";
  return md`${listed}${more}${compared}`;
}

function ageText({ madeAt = 0, ageMs = 0 }: Appraisal): Markdown {
  const at = when(madeAt, "{date_short_pretty} {time}");
  return ageMs > 0 ? md`${at}, ${duration(ageMs)} ago` : md`${at}`;
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
 * is not enabled for the VM.
 */
export function afterChange(
  vm: { attestation?: { enabled?: boolean } },
  appraisal: Appraisal,
): AfterChange | undefined {
  if (vm.attestation?.enabled !== true) return undefined;
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

/** The raw report as a file, for somebody with a verifier: what the service gave, and what was made of it. */
export function reportFile(
  vm: Pick<Vm, "id" | "name" | "attestation">,
  report: AttestationReport,
  appraisal: Appraisal,
  now: number,
): { name: string; content: string } {
  const day = new Date(now).toISOString().replaceAll(/[:]|\.\d+/g, "");
  const bare = plain(vm.name, 60).replaceAll(/[^\p{L}\p{N}._-]+/gu, "-");
  const { verdict, reasons, notes, measurement, difference } = appraisal;
  const content = {
    vm: { id: vm.id, name: vm.name, attestation: vm.attestation },
    readAt: new Date(now).toISOString(),
    report,
    appraisal: { verdict, reasons, notes, measurement, difference },
  };
  return {
    name: `attestation-${bare || "vm"}-${day}.json`,
    content: `${JSON.stringify(content, undefined, 2)}\n`,
  };
}
