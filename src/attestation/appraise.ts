import { type AttestationReport, statusFacts } from "../compute/compute.ts";
import { ComputeError } from "../compute/errors.ts";
import { plain } from "../messages/text.ts";
import { matches, pinOf } from "../verifier/appraisal-policy.ts";
import { appraiseEvidence } from "../verifier/appraise-evidence.ts";
import type { AppraisalOptions, AppraisalReason, Context } from "../verifier/attestation-result.ts";
import { type Facts, notReadable } from "../verifier/verification.ts";
import type { Appraisal, AppraisalInput } from "./appraisal.ts";
import { difference, measuredDigits, nearestOf, normalize } from "./measurements.ts";

/** Clocks of two machines are seldom the same. */
const clockSkewMs = 60_000;
/** Less is allowed where the report from right before a change would pass for the one after it. */
const changeSkewMs = 5_000;

/**
 * Has the verifier judge what the compute service gave for a VM, and says it for people. What the service says beside the report can
 * only contradict, and what it leaves out is missing.
 */
export function appraise(input: AppraisalInput): Appraisal {
  const report = reportIn(input);
  const { verification, now, early } = input;
  const { facts, product } = verification ?? {};
  const measurement = measurementsOf(input);
  const options = appraisalOptions(input);
  const result = appraiseEvidence(verification ?? unread, options);
  const { verdict } = result;
  const isUnverified = verdict === "could not verify";
  const reasons = isUnverified ? asAsked(result.reasons, input) : result.reasons;
  const { validity } = verification?.is === "authentic" ? verification : {};
  const later = verdict === "verified" && early && appraiseEvidence(early, options);
  const madeAt = timeOf(report?.timestamp);
  return {
    verdict,
    reasons: reasons.map(({ says }) => says),
    notes: result.notes,
    wayOut: isUnverified ? wayOutOf(reasons, input, measurement) : undefined,
    isUnconfigured: isUnverified && reasons.every(({ code }) => isForPolicy(code)),
    isAsked: input.hasEndorsements || isPinned(input) || input.attestedAt !== undefined,
    isOff: isSaidOff(input) && !isPinned(input) && input.attestedAt === undefined,
    isWithheld: isWithheld(input),
    isAlarm: result.isAlarm,
    measurement,
    difference: differenceOf(measurement),
    evidence: facts && kindOf(facts, product),
    validUntil: validity?.until,
    endsWith: validity?.endsWith,
    service: {
      verified: report?.verified,
      platform: platformOf(report),
      madeAt,
      ageMs: madeAt === undefined ? undefined : now - madeAt,
    },
    soon: later && later.verdict === "failed" ? wordsOf(later.reasons) : undefined,
    result: verification && result,
  };
}

const unread = notReadable({ reason: "evidence-missing", about: "" });

const wordsOf = (reasons: readonly AppraisalReason[]) => reasons.map(({ says }) => says).join("; ");

const reportIn = ({ report }: Pick<AppraisalInput, "report">) =>
  "error" in report ? undefined : report;

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
export function gateRefusal({
  verdict,
  reasons,
  isAsked,
  isUnconfigured,
}: Pick<Appraisal, "verdict" | "reasons" | "isAsked" | "isUnconfigured">): string | undefined {
  if (verdict === "verified" || isUnconfigured) return undefined;
  return verdict === "failed" || isAsked ? reasons.join("; ") : undefined;
}

/** A pin that doesn't count asks for as much as one that does. */
const isPinned = ({ pins, pinDoubt }: AppraisalInput): boolean =>
  pins.length > 0 || pinDoubt !== undefined;

/** The service isn't a witness against evidence: of a VM that is pinned, or was attested before, its word ends nothing. */
const isSaidOff = ({ vm, report }: AppraisalInput): boolean =>
  vm.attestation?.enabled === false || ("error" in report && vm.attestation?.enabled !== true);

/** The VM runs, and there is no report, though the service can be asked. */
function isWithheld({ vm, report }: AppraisalInput): boolean {
  if (!statusFacts(vm.status ?? "").isRunning) return false;
  if (!("error" in report)) return report.report === undefined;
  const { error } = report;
  return !(error instanceof ComputeError) || !["unreachable", "busy"].includes(error.kind);
}

/** Nobody asked for it in gatehouse.yml. */
const isForPolicy = (code: AppraisalReason["code"]) =>
  code === "no-endorsements" || code === "no-reference-value";

/** What the compute service says against the report, or against itself, and what it leaves out. */
function againstIt(input: AppraisalInput): NonNullable<Context["against"]> {
  const { verification, pinDoubt } = input;
  const { matchesPin, matchesVm } = measurementsOf(input);
  const { facts } = verification ?? {};
  const otherVendor = facts?.tee === "snp" ? /\bintel\b/i : /\bamd\b/i;
  const isOther = facts && otherVendor.test(reportIn(input)?.platform?.vendor ?? "");
  const fails = [
    matchesPin === false ? "the measurement matches no pin" : undefined,
    matchesVm === false ? "the report's measurement is not the VM's" : undefined,
    isOther ? "the compute service names another vendor than the report" : undefined,
  ].filter((says) => says !== undefined);
  const noReport = whyNoReport(input);
  return [
    ...fails.map((says) => ({ effect: "fails", code: "record", says }) as const),
    ...(noReport === undefined
      ? []
      : [{ effect: "lacks", code: "no-report", says: noReport } as const]),
    ...(pinDoubt ? [{ effect: "lacks", code: "pin-doubt", says: doubts[pinDoubt] } as const] : []),
    ...agesOf(input).map((says) => ({ effect: "lacks", code: "age", says }) as const),
  ];
}

const doubts = {
  waits: "its approved pin waits to be sealed in the audit trail, for a second or so",
  forged: "its approved pin was not kept by Gatehouse, or under another bot token",
};

/** Undefined where there is one that counts, raw or not. */
function whyNoReport(input: AppraisalInput): string | undefined {
  const { report, attestedAt } = input;
  if (isSaidOff(input)) {
    const off = "attestation is not enabled for this VM";
    if (!isPinned(input) && attestedAt === undefined) return off;
    const before = isPinned(input) ? "it is pinned" : "its evidence was seen before";
    return `${off}, says the compute service, but ${before}`;
  }
  if (!("error" in report)) return undefined;
  const { error } = report;
  if (!(error instanceof ComputeError)) return "the compute service gave no report";
  if (error.kind === "unreachable" || error.kind === "busy")
    return "the compute service can't be asked right now";
  if (error.kind === "unexpected") return "the compute service's answer can't be read";
  const said = error.serviceMessage ? `: ${plain(error.serviceMessage, 120)}` : "";
  return `the compute service gave no report (${error.status ?? error.kind})${said}`;
}

/** What the service's time for the report says against relying on it. */
function agesOf(input: AppraisalInput): readonly string[] {
  const { now, vm, notBefore } = input;
  const madeAt = timeOf(reportIn(input)?.timestamp);
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

/** Evidence that is broken is so with and without endorsements. */
const broken = /^(evidence-(missing|encoding|too-long)|(quote|report)-truncated)$/;

/** What is missing, for people: a VM without a report needs no word on the report, nor one without endorsements on each of them. */
function asAsked(
  lacks: readonly AppraisalReason[],
  { hasEndorsements, verification, pinDoubt }: AppraisalInput,
): readonly AppraisalReason[] {
  const noReport = lacks.filter(({ code }) => code === "no-report");
  if (noReport.length > 0) return noReport;
  const unasked = new Set<AppraisalReason["code"]>(
    hasEndorsements ? [] : verification?.problems.map(({ reason }) => reason),
  );
  const isKept = ({ code }: AppraisalReason) => !unasked.has(code) || broken.test(code);
  const folded: AppraisalReason = {
    code: "no-endorsements",
    says: "gatehouse.yml names no endorsements to check signatures with",
  };
  const isDoubt = ({ code }: AppraisalReason) => code === "pin-doubt";
  return [
    ...lacks.filter(isDoubt),
    ...(lacks.every(isKept) ? [] : [folded]),
    ...lacks.filter(
      (lack) => isKept(lack) && !isDoubt(lack) && !(pinDoubt && lack.code === "no-reference-value"),
    ),
  ];
}

function wayOutOf(
  lacks: readonly AppraisalReason[],
  { absent = [], pinDoubt }: AppraisalInput,
  { evidence }: Appraisal["measurement"],
): string | undefined {
  const codes = lacks.map(({ code }) => code);
  if (codes.includes("no-endorsements"))
    return "`attestation.endorsements` in gatehouse.yml names the folder of what Intel and AMD have signed; docs/attestation.md says what belongs into it";
  if (absent.length > 0)
    return `Missing in the folder of endorsements: ${absent.join(", ")}; docs/attestation.md says where each comes from`;
  if (codes.some((code) => /expired|endorsement-age/.test(code)))
    return "Renew the vendor's lists in the folder of endorsements; docs/attestation.md says where each comes from";
  if (pinDoubt === "forged")
    return "If nobody replaced the bot token, somebody wrote to Redis: see `node gatehouse.mjs audit verify`. `/gatehouse pins propose` asks others to approve what it measures now, `pins drop` to drop what is there";
  if (codes.includes("no-reference-value") && evidence !== undefined)
    return `If this is what should run, pin it: \`/gatehouse pins propose\` asks others to approve it, or write it under \`attestation.pins\` in gatehouse.yml: ${evidence}`;
  return undefined;
}

/** Milliseconds since the epoch; undefined when it can't be read. */
function timeOf(text: string | undefined): number | undefined {
  const at = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
}

function known(text: string | undefined): string | undefined {
  return text?.trim() ? normalize(text) : undefined;
}

function measurementsOf(input: AppraisalInput): Appraisal["measurement"] {
  const { vm, pins, pinDoubt, verification } = input;
  const [report, ofVm] = [known(reportIn(input)?.measurement), known(vm.attestation?.measurement)];
  const facts = verification?.facts;
  const named = [report, ofVm].filter((one) => one !== undefined);
  const isComparable = pins.length > 0 && (named.length > 0 || facts !== undefined);
  return {
    report,
    vm: ofVm,
    pins,
    pinDoubt,
    matchesVm: report === undefined || ofVm === undefined ? undefined : report === ofVm,
    matchesPin: isComparable ? arePinned(named, facts, pins) : undefined,
    evidence: facts && pinOf(facts),
  };
}

/** What the service names must stand in a pin; what the evidence measures must be one, or the first value of one. */
function arePinned(
  named: readonly string[],
  facts: Facts | undefined,
  pins: readonly string[],
): boolean {
  const values = new Set(pins.flatMap((pin) => pin.split(",")));
  const isNamed = named.every((one) => values.has(one));
  return isNamed && (!facts || pins.some((pin) => matches(pin, facts) !== undefined));
}

/** Against the nearest pin where one of the two is none of them, else the report against the record. */
function differenceOf({
  report,
  vm,
  pins,
  matchesPin,
  matchesVm,
  evidence,
}: Appraisal["measurement"]): string | undefined {
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

function platformOf(report: AttestationReport | undefined): string | undefined {
  const { vendor, model, firmwareVersion } = report?.platform ?? {};
  const firmware = firmwareVersion && `firmware ${firmwareVersion}`;
  const parts = [vendor, model, firmware].filter(Boolean).map((part) => plain(part, 80));
  return parts.length > 0 ? parts.join(" · ") : undefined;
}
