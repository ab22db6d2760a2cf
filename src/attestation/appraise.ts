import type { AttestationReport, Vm } from "../compute/compute.ts";
import { ComputeError } from "../compute/errors.ts";
import { plain } from "../messages/text.ts";
import type { AppraisalPolicy } from "../verifier/appraisal-policy.ts";
import { appraiseEvidence } from "../verifier/appraise-evidence.ts";
import type {
  AppraisalOptions,
  AppraisalReason,
  AttestationResult,
  Context,
} from "../verifier/attestation-result.ts";
import type { Facts, Verification } from "../verifier/verification.ts";
import { difference, nearestOf, normalize, short } from "./measurements.ts";
import { measuredDigits, pinOf, referencesOf } from "./pins.ts";

/** Three results, never two: that something could not be checked is neither good nor bad news. */
export type Verdict = AttestationResult["verdict"];

export interface AppraisalInput {
  vm: Pick<Vm, "createdAt" | "attestation">;
  report: AttestationReport | { error: unknown };
  /** Of the raw report, by the vendors' roots; undefined where there is none. */
  verification: Verification | undefined;
  /** The same by what Intel will ask for next, where that is known. */
  early?: Verification | undefined;
  /** What policy allows for this very VM (`pinsFor`), empty when it says nothing. */
  pins: readonly string[];
  policy: AppraisalPolicy;
  /** Whether gatehouse.yml names a folder of endorsements; without one Gatehouse can check no signature. */
  hasEndorsements: boolean;
  /** Files that are needed and not in that folder. */
  absent?: readonly string[];
  /** What the register of evidence knows. */
  seen?: Context["seen"];
  /** Milliseconds since the epoch. */
  now: number;
  /** Reports from before this moment are not enough: when the VM was changed, in milliseconds since the epoch. */
  notBefore?: number | undefined;
}

export interface Appraisal {
  verdict: Verdict;
  /** Why, as sentences without full stop: what contradicts, what is missing, or what supports it. Never empty. */
  reasons: readonly string[];
  /** What a reader should know beside the verdict. */
  notes: readonly string[];
  /** What to do where it could not be verified. */
  wayOut?: string;
  /** Nothing contradicts, and what is missing is that gatehouse.yml names no endorsements, or no pin for this VM. */
  isUnconfigured: boolean;
  /** Attestation is switched off for the VM. */
  isOff: boolean;
  /** What a vendor had signed was changed or forged. */
  isAlarm: boolean;
  measurement: {
    report?: string;
    vm?: string;
    pins: readonly string[];
    /** Undefined where one of the two isn't known. */
    matchesVm?: boolean;
    /** Undefined without pins, or without anything to hold against them. */
    matchesPin?: boolean;
    /** What the evidence measures, as a pin would name it. */
    evidence?: string;
  };
  /** How the measurement differs from the one expected, in words. */
  difference?: string;
  /** `AMD SEV-SNP report, version 5, Genoa`. */
  evidence?: string;
  /** Until when this result holds, unless a vendor says otherwise before (ms). */
  validUntil?: number;
  /** What ends then: `AMD's revocation list of Genoa`. */
  endsWith?: string;
  /** When the oldest of the vendors' lists was made (ms). */
  endorsedAt?: number;
  /** What the compute service says, which never counts for it. */
  service: {
    verified?: boolean;
    platform?: string;
    /** When it says the report was made, and how long ago that was (ms). */
    madeAt?: number;
    ageMs?: number;
  };
  /** Why it will fail once Intel's next level counts, as sentences without full stop. */
  soon?: string;
  /** The whole result by RFC 9334; undefined without a raw report. */
  result?: AttestationResult;
}

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
    isOff: isOff(input),
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
 * Why a gate must not open on this result: a rollout, a console. Without endorsements or a pin in gatehouse.yml nobody asked
 * for more than that nothing contradicts.
 */
export function gateRefusal({
  verdict,
  reasons,
  isUnconfigured,
}: Pick<Appraisal, "verdict" | "reasons" | "isUnconfigured">): string | undefined {
  return verdict === "verified" || isUnconfigured ? undefined : reasons.join("; ");
}

const distinct = (sentences: readonly string[]) => [...new Set(sentences)];

function known(text: string | undefined): string | undefined {
  return text?.trim() ? normalize(text) : undefined;
}

/** The service may name a measurement of its own making: only one of the size of a register can be held against one. */
const comparable = (measurement: string | undefined) =>
  measurement?.length === measuredDigits ? measurement : undefined;

function measurementsOf(
  { vm, pins }: AppraisalInput,
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

/** Clocks of two machines are seldom the same. */
const clockSkewMs = 60_000;
/** Less is allowed where the report from right before a change would pass for the one after it. */
const changeSkewMs = 5_000;

type Lack = Omit<AppraisalReason, "code"> & {
  code: AppraisalReason["code"] | "policy" | "service";
};

const isOff = ({ vm, report }: Pick<AppraisalInput, "vm" | "report">): boolean =>
  vm.attestation?.enabled === false || ("error" in report && vm.attestation?.enabled !== true);

/** Nobody asked for it in gatehouse.yml. */
const isForPolicy = (code: Lack["code"]) => code === "policy" || code === "no-reference-value";

/** Evidence that is broken is so with and without endorsements. */
const broken = /^(evidence-(missing|encoding|too-long)|(quote|report)-truncated)$/;

/** What would be needed to say more. */
function lacksOf(
  input: AppraisalInput,
  report: AttestationReport | undefined,
  result: AttestationResult | undefined,
): readonly Lack[] {
  const { hasEndorsements } = input;
  const service = (says: string): Lack => ({ code: "service", says });
  if (isOff(input)) return [service("attestation is not enabled for this VM")];
  if ("error" in input.report) return [service(whyNoReport(input.report.error))];
  if (!result) return [service("the compute service gave no raw report")];
  const lacks: readonly AppraisalReason[] =
    result.verdict === "could not verify" ? result.reasons : [];
  const isUnasked = ({ code }: AppraisalReason) =>
    !hasEndorsements &&
    result.verification.problems.some(({ reason }) => reason === code) &&
    !broken.test(code);
  const kept = lacks.filter((lack) => !isUnasked(lack));
  const folded: Lack[] =
    kept.length === lacks.length
      ? []
      : [{ code: "policy", says: "gatehouse.yml names no endorsements to check signatures with" }];
  return [...folded, ...kept, ...agesOf(input, report).map(service)];
}

/** What the service's time for the report says against relying on it. */
function agesOf(
  { now, vm, notBefore }: AppraisalInput,
  report: AttestationReport | undefined,
): string[] {
  const madeAt = timeOf(report?.timestamp);
  if (madeAt === undefined)
    return notBefore === undefined
      ? []
      : ["the compute service doesn't say when the report was made"];
  const createdAt = timeOf(vm.createdAt);
  const ages: string[] = [];
  if (madeAt > now + clockSkewMs) ages.push("the report is dated in the future");
  if (createdAt !== undefined && madeAt < createdAt - clockSkewMs)
    ages.push("the report is older than the VM");
  if (notBefore !== undefined && madeAt < notBefore - changeSkewMs)
    ages.push("the report is still the one from before the change");
  return ages;
}

function wayOutOf(
  lacks: readonly Lack[],
  { absent = [] }: AppraisalInput,
  { evidence }: Appraisal["measurement"],
): string | undefined {
  const codes = lacks.map(({ code }) => code);
  if (codes.includes("policy"))
    return "`attestation.endorsements` in gatehouse.yml names the folder of what Intel and AMD have signed; docs/attestation.md says what belongs into it";
  if (absent.length > 0)
    return `Missing in the folder of endorsements: ${absent.join(", ")}; docs/attestation.md says where each comes from`;
  if (codes.some((code) => /expired|endorsement-age/.test(code)))
    return "Renew the vendor's lists in the folder of endorsements; docs/attestation.md says where each comes from";
  if (codes.includes("no-reference-value") && evidence !== undefined)
    return `If this is what should run, pin it under \`attestation.pins\` in gatehouse.yml: ${evidence}`;
  return undefined;
}

function whyNoReport(error: unknown): string {
  if (!(error instanceof ComputeError)) return "the compute service gave no report";
  if (error.kind === "unreachable" || error.kind === "busy")
    return "the compute service can't be asked right now";
  if (error.kind === "unexpected") return "the compute service's answer can't be read";
  const said = error.serviceMessage ? `: ${plain(error.serviceMessage, 120)}` : "";
  return `the compute service gave no report (${error.status ?? error.kind})${said}`;
}

/** Milliseconds since the epoch; undefined when it can't be read. */
function timeOf(text: string | undefined): number | undefined {
  const at = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
}
