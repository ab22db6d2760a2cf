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
import { duration, lines, type Markdown, md, name, when } from "../messages/text.ts";
import { type Appraisal, shortMeasurement, type Verdict } from "./appraise.ts";
import { short } from "./measurement.ts";

const symbols: Readonly<Record<Verdict, string>> = {
  verified: "✅",
  failed: "🔴",
  "could not verify": "❔",
};

const words: Readonly<Record<Verdict, string>> = {
  verified: "Verified",
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
export function attestationLine(appraisal: Appraisal): Markdown {
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
  if (measurement === undefined) return md`not told`;
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
