import {
  type AttestationReport,
  statusFacts,
  type Vm,
  ComputeError,
} from "../fleet/compute/compute.ts";
import { plain } from "../messages/message.ts";
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

/** Three results, never two: that something could not be checked is neither good nor bad news. */
export type Verdict = AttestationResult["verdict"];

export interface AppraisalInput {
  vm: Pick<Vm, "createdAt" | "attestation"> & Partial<Pick<Vm, "status">>;
  report: AttestationReport | { error: unknown };
  /** Of the raw report, by the vendors' roots. */
  verification: Verification;
  /** The same by what Intel will ask for next, where that is known. */
  early?: Verification | undefined;
  /** What may be measured of this very VM; empty when nothing is said of it. */
  pins: readonly string[];
  /** People are said to have approved a pin that doesn't count, and why it doesn't. */
  pinDoubt?: VmPins["doubt"];
  policy: AppraisalPolicy;
  /** Whether gatehouse.yml names a folder of endorsements; without one Gatehouse can check no signature. */
  hasEndorsements: boolean;
  /** Files that are needed and not in that folder. */
  absent?: readonly string[];
  /** What the register of evidence knows. */
  seen?: Context["seen"];
  /** When genuine evidence of this VM was seen last, before now (Redis's time, ms). */
  attestedAt?: number | undefined;
  /** Milliseconds since the epoch. */
  now: number;
  /** Reports from before this moment are not enough: when the VM was changed, in milliseconds since the epoch. */
  notBefore?: number | undefined;
}

/** Clocks of two machines are seldom the same. */
const clockSkewMs = 60_000;
/** Less is allowed where the report from right before a change would pass for the one after it. */
const changeSkewMs = 5_000;

/**
 * Has the verifier judge what the compute service gave for a VM, and says it for people. What the service says beside the report can
 * only contradict, and what it leaves out is missing.
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
  /** It would verify if just what it measures were pinned. */
  const isPinnable =
    pinned !== undefined &&
    verdict !== "verified" &&
    appraiseEvidence(verification, pinned).verdict === "verified";
  const later = verdict === "verified" && early && appraiseEvidence(early, options);
  return {
    verdict,
    /** Why, as sentences without full stop: what contradicts, what is missing, or what supports it. Never empty. */
    reasons: reasons.map(({ says }) => says),
    /** What a reader should know beside the verdict. */
    notes: result.notes,
    /** The same as codes. */
    codes: reasons.map(({ code }) => code),
    /** Files that are needed, and not in the folder of endorsements. */
    absent: input.absent ?? [],
    isPinnable,
    /** Nothing contradicts, and what is missing is that gatehouse.yml names no endorsements, or no pin for this VM. */
    isUnconfigured:
      isUnverified &&
      reasons.every(({ code }) => code === "no-endorsements" || code === "no-reference-value"),
    /** gatehouse.yml, a pin, or evidence that was seen before asks for more than that nothing contradicts. */
    isAsked: input.hasEndorsements || isGuarded(input),
    /** The service says that attestation is off, and no pin and no evidence of before says otherwise. */
    isOff: isSaidOff(input) && !isGuarded(input),
    /** The service gave a report, or refuses one of a VM that runs: no mere outage. */
    isJudged:
      "error" in input.report
        ? statusFacts(input.vm.status ?? "").isRunning && !isOutage(input.report.error)
        : true,
    /** What a vendor had signed was changed or forged. */
    isAlarm: result.isAlarm,
    measurement,
    /** How the measurement differs from the one expected, in words. */
    difference: differenceOf(measurement),
    evidence: facts && evidenceName(facts, product),
    /** Until when this result holds, unless a vendor says otherwise before (ms). */
    validUntil: validity?.until,
    /** What ends then: `AMD's revocation list of Genoa`. */
    endsWith: validity?.endsWith,
    /** What the compute service says, which never counts for it. */
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

/** What the evidence is held against: policy, pins, and what is known beside it. */
export function appraisalOptions(input: AppraisalInput): AppraisalOptions {
  const { pins, policy, seen, now } = input;
  const { verified, measurement } = reportIn(input) ?? {};
  const named = known(measurement);
  // The service may name a measurement of its own making: only one of the size of a register can be held against one
  const service = { verified, measurement: named?.length === measuredDigits ? named : undefined };
  return { policy, references: pins, now, context: { service, seen, against: againstIt(input) } };
}

/**
 * Why a gate must not open on this result: a rollout, a console. Without endorsements in gatehouse.yml, a pin, or evidence of
 * before, nobody asked for more than that nothing contradicts.
 */
export function gateRefusal(appraisal: Appraisal): string | undefined {
  const { verdict, reasons, isAsked, isUnconfigured } = appraisal;
  if (verdict === "verified" || isUnconfigured) return undefined;
  return verdict === "failed" || isAsked ? reasons.join("; ") : undefined;
}

/** A pin that doesn't count asks for as much as one that does. */
const isPinned = ({ pins, pinDoubt }: AppraisalInput): boolean =>
  pins.length > 0 || pinDoubt !== undefined;

/** The service isn't a witness against evidence: of a VM that is pinned, or was attested before, its word ends nothing. */
const isGuarded = (input: AppraisalInput): boolean =>
  isPinned(input) || input.attestedAt !== undefined;

const isSaidOff = ({ vm, report }: AppraisalInput): boolean =>
  vm.attestation?.enabled === false || ("error" in report && vm.attestation?.enabled !== true);

/** The compute service can't be asked right now. */
const isOutage = (error: unknown): boolean =>
  error instanceof ComputeError && ["unreachable", "busy"].includes(error.kind);

/** What the compute service says against the report, or against itself, and what it leaves out. */
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

/** Undefined where there is one that counts, raw or not. */
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
  const said = error.serviceMessage ? `: ${plain(error.serviceMessage, 120)}` : "";
  return `the compute service gave no report (${error.status ?? error.kind})${said}`;
}

/** What the service's time for the report says against relying on it. */
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

/** Evidence that is broken is so with and without endorsements. */
const broken = /^(evidence-(missing|encoding|too-long)|(quote|report)-truncated)$/;

/** What is missing, for people: a VM without a report needs no word on the report, nor one without endorsements on each of them. */
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
  const named = [report, vm].filter((one) => one !== undefined);
  const isComparable = pins.length > 0 && (named.length > 0 || facts !== undefined);
  return {
    report,
    vm,
    /** Those that count. */
    pins,
    pinDoubt,
    /** Undefined where one of the two isn't known. */
    matchesVm: report === undefined || vm === undefined ? undefined : report === vm,
    /** Undefined without pins, or without anything to hold against them. */
    matchesPin: isComparable ? arePinned(named, facts, pins) : undefined,
    /** What the evidence measures, as a pin would name it. */
    evidence: facts && pinOf(facts),
  };
}

/** What the service names must stand in a pin; what the evidence measures must be one, or the first value of one. */
function arePinned(
  named: readonly string[],
  facts: EvidenceFacts | undefined,
  pins: readonly string[],
): boolean {
  const values = new Set(pins.flatMap((pin) => pin.split(",")));
  const isNamed = named.every((one) => values.has(one));
  return isNamed && (!facts || pins.some((pin) => matches(pin, facts) !== undefined));
}

/** Against the nearest pin where one of the two is none of them, else the report against the record. */
function differenceOf(of: ReturnType<typeof measurementsOf>): string | undefined {
  const { report, vm, pins, matchesPin, matchesVm, evidence } = of;
  if (matchesPin === false) {
    const allowed = pins.flatMap((pin) => pin.split(","));
    const all = [...(evidence?.split(",") ?? []), report, vm];
    const found = all.find((one) => one !== undefined && !allowed.includes(one)) ?? "";
    return bytesThatDiffer(found, ...allowed);
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
  /** When it says the report was made. */
  const madeAt = parseTime(report?.timestamp);
  return {
    verified: report?.verified,
    platform: parts.length > 0 ? parts.join(" · ") : undefined,
    madeAt,
    ageMs: madeAt === undefined ? undefined : now - madeAt,
  };
}
