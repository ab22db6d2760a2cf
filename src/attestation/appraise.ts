import type { AttestationReport } from "../compute/compute.ts";
import { plain } from "../messages/text.ts";
import { appraiseEvidence } from "../verifier/appraise-evidence.ts";
import type { AppraisalOptions } from "../verifier/attestation-result.ts";
import type { Facts } from "../verifier/verification.ts";
import type { Appraisal, AppraisalInput } from "./appraisal.ts";
import { isForPolicy, isOff, isPinned, isWithheld, lacksOf, timeOf, wayOutOf } from "./lacks.ts";
import { difference, nearestOf, normalize, short } from "./measurements.ts";
import { measuredDigits, pinOf, referencesOf } from "./pins.ts";

/**
 * Judges what the compute service gave for a VM: its raw report by the vendors' roots and by policy, then what the service
 * says beside it, which can only contradict. What contradicts makes `failed`, and outweighs what is missing, which makes
 * `could not verify`.
 */
export function appraise(input: AppraisalInput): Appraisal {
  const report = "error" in input.report ? undefined : input.report;
  const { verification, now } = input;
  const measurement = measurementsOf(input, report, verification?.facts);
  const result = verification && appraiseEvidence(verification, appraisalOptions(input));
  const failures = distinct([
    ...(result?.verdict === "failed" ? result.reasons.map(({ says }) => says) : []),
    ...contradictionsOf(report, verification?.facts, measurement),
  ]);
  const lacks = lacksOf(input, report, result);
  const madeAt = timeOf(report?.timestamp);
  const diff = differenceOf(measurement);
  const verdict =
    failures.length > 0 ? "failed" : lacks.length > 0 ? "could not verify" : "verified";
  const wayOut = verdict === "could not verify" ? wayOutOf(lacks, input, measurement) : undefined;
  const { validity } = verification?.is === "authentic" ? verification : {};
  return {
    verdict,
    reasons:
      failures.length > 0
        ? failures
        : distinct(
            lacks.length > 0
              ? lacks.map(({ says }) => says)
              : (result?.reasons ?? []).map(({ says }) => says),
          ),
    notes: result?.notes ?? [],
    ...(wayOut === undefined ? {} : { wayOut }),
    isUnconfigured: verdict === "could not verify" && lacks.every(({ code }) => isForPolicy(code)),
    isAsked: input.hasEndorsements || isPinned(input) || input.attestedAt !== undefined,
    isOff: isOff(input),
    isWithheld: isWithheld(input),
    isAlarm: result?.isAlarm ?? false,
    measurement,
    ...(diff === undefined ? {} : { difference: diff }),
    ...(verification?.facts ? { evidence: kindOf(verification.facts, verification.product) } : {}),
    ...(validity ? { validUntil: validity.until, endsWith: validity.endsWith } : {}),
    ...(verification?.endorsedAt === undefined ? {} : { endorsedAt: verification.endorsedAt }),
    service: {
      ...(report?.verified === undefined ? {} : { verified: report.verified }),
      ...platformOf(report),
      ...(madeAt === undefined ? {} : { madeAt, ageMs: now - madeAt }),
    },
    ...(verdict === "verified" ? soonOf(input) : {}),
    ...(result ? { result } : {}),
  };
}

function soonOf(input: AppraisalInput): { soon?: string } {
  const later = input.early && appraiseEvidence(input.early, appraisalOptions(input));
  if (later?.verdict !== "failed") return {};
  return { soon: distinct(later.reasons.map(({ says }) => says)).join("; ") };
}

/** What the evidence is held against: policy, pins, and what is known beside it. */
export function appraisalOptions({
  report,
  pins,
  policy,
  seen,
  now,
}: Pick<AppraisalInput, "report" | "pins" | "policy" | "seen" | "now">): AppraisalOptions {
  const { verified, measurement } = "error" in report ? {} : report;
  const service = { verified, measurement: comparable(known(measurement)) };
  const context = { service, ...(seen === undefined ? {} : { seen }) };
  return { policy, references: referencesOf(pins), now, context };
}

/**
 * Why a gate must not open on this result: a rollout, a console. Without endorsements in gatehouse.yml, a pin, or evidence of
 * before, nobody asked for more than that nothing contradicts.
 */
export function gateRefusal({
  verdict,
  reasons,
  isAsked,
  isUnconfigured,
}: Pick<Appraisal, "verdict" | "reasons" | "isAsked" | "isUnconfigured">): string | undefined {
  if (verdict === "verified" || isUnconfigured) return undefined;
  return verdict === "failed" || isAsked ? reasons.join("; ") : undefined;
}

const distinct = (sentences: readonly string[]) => [...new Set(sentences)];

function known(text: string | undefined): string | undefined {
  return text?.trim() ? normalize(text) : undefined;
}

/** The service may name a measurement of its own making: only one of the size of a register can be held against one. */
const comparable = (measurement: string | undefined) =>
  measurement?.length === measuredDigits ? measurement : undefined;

function measurementsOf(
  { vm, pins, pinDoubt }: AppraisalInput,
  report: AttestationReport | undefined,
  facts: Facts | undefined,
): Appraisal["measurement"] {
  const [ofReport, ofVm] = [known(report?.measurement), known(vm.attestation?.measurement)];
  const evidence = facts && pinOf(facts);
  const named = [ofReport, ofVm].filter((one) => one !== undefined);
  return {
    ...(ofReport === undefined ? {} : { report: ofReport }),
    ...(ofVm === undefined ? {} : { vm: ofVm }),
    pins,
    ...(pinDoubt === undefined ? {} : { pinDoubt }),
    ...(ofReport === undefined || ofVm === undefined ? {} : { matchesVm: ofReport === ofVm }),
    ...(pins.length === 0 || (named.length === 0 && !evidence)
      ? {}
      : { matchesPin: arePinned(named, evidence, pins) }),
    ...(evidence === undefined ? {} : { evidence }),
  };
}

/** What the service names must stand in a pin; what the evidence measures must be one, or the first value of one. */
function arePinned(
  named: readonly string[],
  evidence: string | undefined,
  pins: readonly string[],
): boolean {
  const values = new Set(pins.flatMap((pin) => pin.split(",")));
  const isNamed = named.every((one) => values.has(one));
  if (evidence === undefined || referencesOf(pins).length === 0) return isNamed;
  const [first] = evidence.split(",");
  return isNamed && pins.some((pin) => pin === evidence || pin === first);
}

/** Against the nearest pin where one of the two is none of them, else the report against the record. */
function differenceOf({
  report,
  vm,
  pins,
  matchesPin,
  matchesVm,
  evidence,
}: Appraisal["measurement"]) {
  if (matchesPin === false) {
    const allowed = pins.flatMap((pin) => pin.split(","));
    const all = [...(evidence?.split(",") ?? []), report, vm];
    const found = all.find((one) => one !== undefined && !allowed.includes(one)) ?? "";
    return difference(found, nearestOf(found, allowed) ?? "");
  }
  return matchesVm === false ? difference(report ?? "", vm ?? "") : undefined;
}

function kindOf(facts: Facts, product: string | undefined): string {
  return facts.tee === "tdx"
    ? `Intel TDX quote, version ${facts.version}`
    : `AMD SEV-SNP report, version ${facts.version}${product ? `, ${product}` : ""}`;
}

function platformOf(report: AttestationReport | undefined): { platform?: string } {
  const { vendor, model, firmwareVersion } = report?.platform ?? {};
  const firmware = firmwareVersion && `firmware ${firmwareVersion}`;
  const parts = [vendor, model, firmware].filter(Boolean).map((part) => plain(part, 80));
  return parts.length > 0 ? { platform: parts.join(" · ") } : {};
}

/** For one line: `4f2a…91bc`, of the evidence, or else of what the service names. */
export function shortMeasurement({ measurement }: Appraisal): string | undefined {
  const one = measurement.evidence?.split(",")[0] ?? measurement.report ?? measurement.vm;
  return one === undefined ? undefined : short(one);
}

/** What the compute service says against the report, or against itself. */
function contradictionsOf(
  report: AttestationReport | undefined,
  facts: Facts | undefined,
  { matchesVm, matchesPin }: Appraisal["measurement"],
): string[] {
  const found: string[] = [];
  if (matchesPin === false) found.push("the measurement matches no pin");
  if (matchesVm === false) found.push("the report's measurement is not the VM's");
  const other = facts?.tee === "snp" ? /\bintel\b/i : /\bamd\b/i;
  if (facts && other.test(report?.platform?.vendor ?? ""))
    found.push("the compute service names another vendor than the report");
  return found;
}
