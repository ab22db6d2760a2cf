import { hash } from "node:crypto";
import {
  type AttestationReport,
  statusFacts,
  type Vm,
  ComputeError,
} from "../fleet/compute/compute.ts";
import { plain } from "../messages/markdown.ts";
import { type AppraisalPolicy, matches, pinOf } from "../verifier/appraisal-policy.ts";
import { appraiseEvidence } from "../verifier/appraise-evidence.ts";
import type {
  AppraisalOptions,
  AppraisalReason,
  AttestationResult,
  Context,
} from "../verifier/attestation-result.ts";
import type { EvidenceFacts, Verification } from "../verifier/verification.ts";
import { bytesThatDiffer, doubts, measuredDigits, normalize, type VmPins } from "./pins.ts";
import { parseTime } from "../text/parse-time.ts";

/**
 * There are three verdicts, because something that couldn't be checked is neither good nor bad
 * news.
 */
export type Verdict = AttestationResult["verdict"];

export interface AppraisalInput {
  vm: Pick<Vm, "createdAt" | "attestation"> & Partial<Pick<Vm, "status">>;
  report: AttestationReport | { error: unknown };
  /** The result of verifying the raw report by the vendors' roots. */
  verification: Verification;
  /** The same result by the level that Intel will require next, if it is known. */
  early?: Verification | undefined;
  /** The measurements that this VM may have. Empty when it has no pin. */
  pins: readonly string[];
  /** Set when an approved pin of this VM doesn't count: the reason why. */
  pinDoubt?: VmPins["doubt"];
  policy: AppraisalPolicy;
  /**
   * Whether gatehouse.yml names a folder of endorsements. Without one, Gatehouse can't check
   * signatures.
   */
  hasEndorsements: boolean;
  /** Files that are needed and aren't in that folder. */
  absent?: readonly string[];
  /** The finding of the register of evidence about this report. */
  seen?: Context["seen"];
  /** When genuine evidence of this VM was last seen before now (Redis time, ms). */
  attestedAt?: number | undefined;
  /** Milliseconds since the epoch. */
  now: number;
  /**
   * When the VM was changed (ms since the epoch). A report from before that moment isn't enough.
   */
  notBefore?: number | undefined;
}

/** Clocks of two machines are seldom the same. */
const clockSkewMs = 60_000;
/**
 * The tolerance is smaller for a change, because a report from right before it would otherwise pass
 * for one after it.
 */
const changeSkewMs = 5_000;

/**
 * Has the verifier appraise what the compute service returned for a VM, and words the result for
 * people. What the service says apart from the report can only contradict, and what it omits is
 * missing.
 */
export function appraise(input: AppraisalInput) {
  const { verification, now, early } = input;
  const { facts, product } = verification;
  const { validity } = verification.is === "authentic" ? verification : {};
  const options = appraisalOptions(input);
  const result = appraiseEvidence(verification, options);
  const { verdict } = result;
  const isUnverified = verdict === "could not verify";
  const reasons = isUnverified ? asAsked(result.reasons, input) : result.reasons;
  const measurement = measurementsOf(input);
  const pinned = facts && appraisalOptions({ ...input, pins: [pinOf(facts)], pinDoubt: undefined });
  /** Whether it would verify if exactly what it measures were pinned. */
  const isPinnable =
    pinned !== undefined &&
    verdict !== "verified" &&
    appraiseEvidence(verification, pinned).verdict === "verified";
  const later = verdict === "verified" && early && appraiseEvidence(early, options);
  return {
    verdict,
    /**
     * The reasons as sentences without full stop: what contradicts, what is missing, or what
     * supports the verdict. Never empty.
     */
    reasons: reasons.map(({ says }) => says),
    /** Further facts that a reader should know. */
    notes: result.notes,
    /** The same as codes. */
    codes: reasons.map(({ code }) => code),
    /** Files that are needed, and not in the folder of endorsements. */
    absent: input.absent ?? [],
    isPinnable,
    /**
     * True when nothing contradicts, and all that is missing is that gatehouse.yml names no
     * endorsements, or no pin for this VM.
     */
    isUnconfigured:
      isUnverified &&
      reasons.every(({ code }) => code === "no-endorsements" || code === "no-reference-value"),
    /**
     * True when gatehouse.yml, a pin, or earlier evidence requires more than that nothing
     * contradicts.
     */
    isAsked: input.hasEndorsements || isGuarded(input),
    /**
     * True when the service says that attestation is off, and no pin and no earlier evidence
     * contradicts that.
     */
    isOff: isSaidOff(input) && !isGuarded(input),
    /**
     * True when the service returned a report, or refuses one for a running VM, so that it isn't a
     * mere outage.
     */
    isJudged:
      "error" in input.report
        ? statusFacts(input.vm.status ?? "").isRunning && !isOutage(input.report.error)
        : true,
    /** True when something that a vendor had signed was changed or forged. */
    isAlarm: result.isAlarm,
    measurement,
    /** How the measurement differs from the expected one, in words. */
    difference: differenceOf(measurement),
    evidence: facts && evidenceName(facts, product),
    /** How long this result holds, unless a vendor decides otherwise earlier (ms). */
    validUntil: validity?.until,
    /** The name of the endorsement that ends then: `AMD's revocation list for Genoa`. */
    endsWith: validity?.endsWith,
    /** The compute service's own statement, which never counts in the VM's favor. */
    service: wordOfService(reportIn(input), now),
    /** Why it will fail once Intel's next level counts, as sentences without full stop. */
    soon:
      later && later.verdict === "failed"
        ? later.reasons.map(({ says }) => says).join("; ")
        : undefined,
    /** The whole result by RFC 9334. */
    result,
  };
}

export type Appraisal = ReturnType<typeof appraise>;

const reportIn = ({ report }: AppraisalInput) => ("error" in report ? undefined : report);

/**
 * Everything that the evidence is compared with: the policy, the pins, and other facts about the
 * VM.
 */
export function appraisalOptions(input: AppraisalInput): AppraisalOptions {
  const { pins, policy, seen, now } = input;
  const { verified, measurement } = reportIn(input) ?? {};
  const named = known(measurement);
  // The service may report a measurement of its own making. Only one with the size of a register
  // can be compared.
  const service = { verified, measurement: named?.length === measuredDigits ? named : undefined };
  return { policy, references: pins, now, context: { service, seen, against: againstIt(input) } };
}

/**
 * Why something that depends on this result, like a rollout or a console, must not go on. Unless
 * gatehouse.yml names endorsements, or there is a pin or earlier evidence, it is enough that
 * nothing contradicts.
 */
export function gateRefusal(appraisal: Appraisal): string | undefined {
  const { verdict, reasons, isAsked, isUnconfigured } = appraisal;
  if (verdict === "verified" || isUnconfigured) return undefined;
  return verdict === "failed" || isAsked ? reasons.join("; ") : undefined;
}

/** A pin that doesn't count requires as much as one that does. */
const isPinned = ({ pins, pinDoubt }: AppraisalInput): boolean =>
  pins.length > 0 || pinDoubt !== undefined;

/**
 * Whether a pin or earlier evidence protects this VM. The service's word can't then switch
 * attestation off for it.
 */
const isGuarded = (input: AppraisalInput): boolean =>
  isPinned(input) || input.attestedAt !== undefined;

const isSaidOff = ({ vm, report }: AppraisalInput): boolean =>
  vm.attestation?.enabled === false || ("error" in report && vm.attestation?.enabled !== true);

/** Whether the compute service just can't be reached at the moment. */
const isOutage = (error: unknown): boolean =>
  error instanceof ComputeError && ["unreachable", "busy"].includes(error.kind);

/**
 * Findings from the compute service's statements: they contradict the report or each other, or omit
 * something.
 */
function againstIt(input: AppraisalInput): NonNullable<Context["against"]> {
  const { verification, pinDoubt } = input;
  const { matchesPin, matchesVm } = measurementsOf(input);
  const otherVendor = verification.facts?.tee === "snp" ? /\bintel\b/i : /\bamd\b/i;
  const isOther = verification.facts && otherVendor.test(reportIn(input)?.platform?.vendor ?? "");
  return [
    ...weigh(
      "fails",
      "record",
      matchesPin === false && "the measurement matches no pin",
      matchesVm === false && "the report's measurement is not the VM's",
      isOther && "the compute service names another vendor than the report",
    ),
    ...weigh("lacks", "no-report", whyNoReport(input)),
    ...weigh("lacks", "pin-doubt", pinDoubt && doubts[pinDoubt]),
    ...weigh("lacks", "age", ...agesOf(input)),
  ];
}

const weigh = <Effect extends "fails" | "lacks">(
  effect: Effect,
  code: AppraisalReason["code"],
  ...all: readonly (string | false | undefined)[]
) => all.flatMap((says) => (says ? [{ effect, code, says }] : []));

/** Why there is no usable report. Undefined when there is one, raw or not. */
function whyNoReport(input: AppraisalInput): string | undefined {
  const { report } = input;
  if (isSaidOff(input)) {
    const off = "attestation is not enabled for this VM";
    if (!isGuarded(input)) return off;
    const before = isPinned(input) ? "it is pinned" : "its evidence was seen before";
    return `${off}, says the compute service, but ${before}`;
  }
  if (!("error" in report)) return undefined;
  const { error } = report;
  if (isOutage(error)) return "the compute service can't be asked right now";
  if (!(error instanceof ComputeError)) return "the compute service gave no report";
  if (error.kind === "unexpected") return "the compute service's answer can't be read";
  const serviceText = error.serviceMessage ? `: ${plain(error.serviceMessage, 120)}` : "";
  return `the compute service gave no report (${error.status ?? error.kind})${serviceText}`;
}

/** Objections from the time that the service gives for the report. */
function agesOf(input: AppraisalInput): readonly (string | false)[] {
  const { now, vm, notBefore } = input;
  const madeAt = parseTime(reportIn(input)?.timestamp);
  if (madeAt === undefined)
    return [notBefore !== undefined && "the compute service doesn't say when the report was made"];
  return [
    madeAt > now + clockSkewMs && "the report is dated in the future",
    madeAt < (parseTime(vm.createdAt) ?? -Infinity) - clockSkewMs &&
      "the report is older than the VM",
    madeAt < (notBefore ?? -Infinity) - changeSkewMs &&
      "the report is still the one from before the change",
  ];
}

/** Evidence that is broken, which endorsements can't change. */
const broken = /^(evidence-(missing|encoding|too-long)|(quote|report)-truncated)$/;

/**
 * The missing parts that are worth telling. A VM without a report gets no remarks about the report,
 * and one without endorsements gets one remark instead of one for each of them.
 */
function asAsked(
  lacks: readonly AppraisalReason[],
  { hasEndorsements, verification, pinDoubt }: AppraisalInput,
): readonly AppraisalReason[] {
  const noReport = lacks.filter(({ code }) => code === "no-report");
  if (noReport.length > 0) return noReport;
  const ofEvidence = new Set<AppraisalReason["code"]>(
    verification.problems.map(({ reason }) => reason),
  );
  const isUnasked = ({ code }: AppraisalReason) =>
    !hasEndorsements && ofEvidence.has(code) && !broken.test(code);
  const asked = lacks.filter(
    (lack) => !isUnasked(lack) && !(pinDoubt && lack.code === "no-reference-value"),
  );
  const says = "gatehouse.yml names no endorsements to check signatures with";
  return [
    ...asked.filter(({ code }) => code === "pin-doubt"),
    ...(lacks.some(isUnasked) ? [{ code: "no-endorsements", says } as const] : []),
    ...asked.filter(({ code }) => code !== "pin-doubt"),
  ];
}

function known(text: string | undefined): string | undefined {
  return text?.trim() ? normalize(text) : undefined;
}

function measurementsOf(input: AppraisalInput) {
  const { pins, pinDoubt, verification } = input;
  const report = known(reportIn(input)?.measurement);
  const vm = known(input.vm.attestation?.measurement);
  const facts = verification.facts;
  const named = [report, vm].filter((measurement) => measurement !== undefined);
  const isComparable = pins.length > 0 && (named.length > 0 || facts !== undefined);
  return {
    report,
    vm,
    /** The pins that count. */
    pins,
    pinDoubt,
    /** Undefined when one of the two isn't known. */
    matchesVm: report === undefined || vm === undefined ? undefined : report === vm,
    /** Undefined without pins, or without anything to compare with them. */
    matchesPin: isComparable ? arePinned(named, facts, pins) : undefined,
    /** The measurements of the evidence, written as a pin. */
    evidence: facts && pinOf(facts),
  };
}

/**
 * Whether a pin allows the measurements. What the service names must be a value in a pin; what the
 * evidence measures must be a pin, or the first value of one.
 */
function arePinned(
  named: readonly string[],
  facts: EvidenceFacts | undefined,
  pins: readonly string[],
): boolean {
  const values = new Set(pins.flatMap((pin) => pin.split(",")));
  const isNamed = named.every((measurement) => values.has(measurement));
  return isNamed && (!facts || pins.some((pin) => matches(pin, facts) !== undefined));
}

/**
 * Compares the first value that isn't pinned with the nearest pin, or else the report with the VM's
 * record.
 */
function differenceOf(of: ReturnType<typeof measurementsOf>): string | undefined {
  const { report, vm, pins, matchesPin, matchesVm, evidence } = of;
  if (matchesPin === false) {
    const allowed = pins.flatMap((pin) => pin.split(","));
    const all = [...(evidence?.split(",") ?? []), report, vm];
    const unpinned =
      all.find((measurement) => measurement !== undefined && !allowed.includes(measurement)) ?? "";
    return bytesThatDiffer(unpinned, ...allowed);
  }
  return matchesVm === false ? bytesThatDiffer(report ?? "", vm ?? "") : undefined;
}

/** `AMD SEV-SNP report, version 5, Genoa`. */
export const evidenceName = (
  { tee, version }: EvidenceFacts,
  product: string | undefined,
): string =>
  tee === "tdx"
    ? `Intel TDX quote, version ${version}`
    : `AMD SEV-SNP report, version ${version}${product ? `, ${product}` : ""}`;

function wordOfService(report: AttestationReport | undefined, now: number) {
  const { vendor, model, firmwareVersion } = report?.platform ?? {};
  const firmware = firmwareVersion && `firmware ${firmwareVersion}`;
  const parts = [vendor, model, firmware].filter(Boolean).map((part) => plain(part, 80));
  /** When the report was made, according to the service (ms). */
  const madeAt = parseTime(report?.timestamp);
  return {
    verified: report?.verified,
    platform: parts.length > 0 ? parts.join(" · ") : undefined,
    madeAt,
    ageMs: madeAt === undefined ? undefined : now - madeAt,
  };
}

/** Identifies a failure: appraisals that fail for the same reasons, with the same measurement, have equal marks. */
export function failureMark({ reasons, measurement }: Appraisal): string {
  const causes = [...reasons, measurement.report ?? ""].join("\n");
  return hash("sha256", causes).slice(0, 16);
}
