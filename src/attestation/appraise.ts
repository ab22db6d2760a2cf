import type { AttestationReport, Vm, Compute } from "../compute/compute.ts";
import { plain } from "../messages/text.ts";
import {
  difference,
  nearestOf,
  normalize,
  short,
  type Evidence,
  readEvidence,
} from "./evidence.ts";
import { ComputeError } from "../compute/errors.ts";
import { matchesGlob } from "../text/glob.ts";
import type { Pin } from "../config/policy-file.ts";

/** Three results, never two: that something could not be checked is neither good nor bad news. */
export type Verdict = "verified" | "failed" | "could not verify";

export interface AppraisalInput {
  vm: Pick<Vm, "name" | "createdAt" | "attestation">;
  report: AttestationReport | { error: unknown };
  /** What policy allows for this very VM (`pinsFor`), empty when it says nothing. */
  pins: readonly string[];
  /** Milliseconds since the epoch. */
  now: number;
  /** Reports older than this, or without a time, are not enough. */
  staleAfterMs?: number | undefined;
  /** Reports from before this moment are not enough: when the VM was changed, in milliseconds since the epoch. */
  notBefore?: number | undefined;
}

export interface Appraisal {
  verdict: Verdict;
  /** Why, as sentences without full stop: what contradicts, what is missing, or what supports it. Never empty. */
  reasons: readonly string[];
  /** What a reader should know beside the verdict. */
  notes: readonly string[];
  measurement: {
    report?: string;
    vm?: string;
    pins: readonly string[];
    /** Undefined where one of the two isn't known. */
    matchesVm?: boolean;
    /** Undefined without pins. */
    matchesPin?: boolean;
  };
  /** How the measurement differs from the one expected, in words. */
  difference?: string;
  evidence: Evidence;
  platform?: string;
  /** When the report says it was made, and how long ago that was; milliseconds. */
  madeAt?: number;
  ageMs?: number;
}

/**
 * Compares what the service says of a VM with itself, with its raw report and with the pins. RFC 9334: the service is the
 * verifier, we are the relying party; its word is a claim, so that it can be contradicted in here but not proven. What
 * contradicts makes `failed`, and outweighs what is missing, which makes `could not verify`.
 */
export function appraise(input: AppraisalInput): Appraisal {
  const report = "error" in input.report ? undefined : input.report;
  const evidence = readEvidence(report?.report);
  const measurement = measurementsOf(input, report);
  const madeAt = timeOf(report?.timestamp);
  const failures = failuresOf(report, evidence, measurement);
  const missing = [...missingOf(input, evidence, measurement), ...agesOf(input, report, madeAt)];
  const diff = differenceOf(measurement);
  return {
    verdict: failures.length > 0 ? "failed" : missing.length > 0 ? "could not verify" : "verified",
    reasons: failures.length > 0 ? failures : missing.length > 0 ? missing : supportOf(measurement),
    notes: notesOf(measurement, evidence, report !== undefined),
    measurement,
    ...(diff === undefined ? {} : { difference: diff }),
    evidence,
    ...platformOf(report),
    ...(madeAt === undefined ? {} : { madeAt, ageMs: input.now - madeAt }),
  };
}

function known(text: string | undefined): string | undefined {
  return text?.trim() ? normalize(text) : undefined;
}

function measurementsOf(
  { vm, pins }: AppraisalInput,
  report: AttestationReport | undefined,
): Appraisal["measurement"] {
  const [ofReport, ofVm] = [known(report?.measurement), known(vm.attestation?.measurement)];
  const allowed = pins.map((pin) => normalize(pin));
  const seen = [ofReport, ofVm].filter((one) => one !== undefined);
  return {
    ...(ofReport === undefined ? {} : { report: ofReport }),
    ...(ofVm === undefined ? {} : { vm: ofVm }),
    pins: allowed,
    ...(ofReport === undefined || ofVm === undefined ? {} : { matchesVm: ofReport === ofVm }),
    ...(allowed.length === 0 || seen.length === 0
      ? {}
      : { matchesPin: seen.every((one) => allowed.includes(one)) }),
  };
}

/** Against the nearest pin where one of the two is none of them, else the report against the record. */
function differenceOf({ report, vm, pins, matchesPin, matchesVm }: Appraisal["measurement"]) {
  if (matchesPin === false) {
    const found = [report, vm].find((one) => one !== undefined && !pins.includes(one)) ?? "";
    return difference(found, nearestOf(found, pins) ?? "");
  }
  return matchesVm === false ? difference(report ?? "", vm ?? "") : undefined;
}

function supportOf({ matchesVm, matchesPin }: Appraisal["measurement"]): string[] {
  const support = ["the compute service says the report is verified"];
  if (matchesVm) support.push("its measurement is the VM's");
  if (matchesPin) support.push("it matches a pin");
  return support;
}

function notesOf(
  { report: claimed, pins }: Appraisal["measurement"],
  evidence: Evidence,
  isThere: boolean,
): string[] {
  const notes: string[] = [];
  if (isThere) {
    notes.push("Verified is the provider's claim: Gatehouse checked no signature");
    notes.push("Not fresh: the compute service takes no nonce, so a stored report looks the same");
  }
  if (evidence.is === "unknown") notes.push("The raw report's format is unknown");
  if (evidence.is === "read") {
    const its = evidence.registers.find(({ value }) => value === claimed);
    const sizes = `${(evidence.registers[0]?.value.length ?? 0) / 2} bytes`;
    notes.push(
      its
        ? `${its.name} of the raw ${evidence.format} is the measurement`
        : `The raw report is an ${evidence.format}, its measurements have ${sizes}`,
    );
  }
  if (pins.length === 0) notes.push("No pin is set for this VM: any measurement passes");
  return notes;
}

function platformOf(report: AttestationReport | undefined): { platform?: string } {
  const { vendor, model, firmwareVersion } = report?.platform ?? {};
  const firmware = firmwareVersion && `firmware ${firmwareVersion}`;
  const parts = [vendor, model, firmware].filter(Boolean).map((part) => plain(part, 80));
  return parts.length > 0 ? { platform: parts.join(" · ") } : {};
}

/** For one line: `4f2a…91bc`, of the report or else of the record. */
export function shortMeasurement({ measurement }: Appraisal): string | undefined {
  const one = measurement.report ?? measurement.vm;
  return one === undefined ? undefined : short(one);
}

/** Clocks of two machines are seldom the same. */
const clockSkewMs = 60_000;
/** Less is allowed where the report from right before a change would pass for the one after it. */
const changeSkewMs = 5_000;

/** What speaks against it, whatever else is missing. */
function failuresOf(
  report: AttestationReport | undefined,
  evidence: Evidence,
  { report: claimed, matchesVm, matchesPin }: Appraisal["measurement"],
): string[] {
  const failures: string[] = [];
  if (report?.verified === false)
    failures.push("the compute service says the report is not verified");
  if (matchesPin === false) failures.push("its measurement matches no pin");
  if (matchesVm === false) failures.push("the report's measurement is not the VM's");
  if (evidence.is !== "read") return failures;
  const { registers, format, vendor } = evidence;
  const isComparable = registers.some(({ value }) => value.length === claimed?.length);
  if (isComparable && registers.every(({ value }) => value !== claimed))
    failures.push(
      "the raw report holds a measurement other than the one the compute service names",
    );
  if (evidence.isDebug)
    failures.push("the raw report says that debugging is on: the host can read the VM's memory");
  const other = vendor === "AMD" ? /\bintel\b/i : /\bamd\b/i;
  if (other.test(report?.platform?.vendor ?? ""))
    failures.push(`the raw report is an ${format}, but the compute service names another platform`);
  return failures;
}

/** What would be needed to say more. */
function missingOf(
  { vm, report }: AppraisalInput,
  evidence: Evidence,
  { report: claimed, vm: recorded, pins }: Appraisal["measurement"],
): string[] {
  if (vm.attestation?.enabled !== true && "error" in report)
    return ["attestation is not enabled for this VM"];
  if ("error" in report) return [whyNoReport(report.error)];
  const missing: string[] = [];
  if (vm.attestation?.enabled === false) missing.push("attestation is not enabled for this VM");
  if (report.verified === undefined)
    missing.push("the compute service doesn't say whether the report is verified");
  if (evidence.is === "missing") missing.push("the compute service gave no raw report");
  if (evidence.is === "damaged") missing.push(`the raw report can't be read: ${evidence.why}`);
  if (evidence.is === "read" && !evidence.isBound)
    missing.push("the raw report is bound to nothing (its report data is empty)");
  if (claimed === undefined) missing.push("the report names no measurement");
  else if (recorded === undefined && pins.length === 0)
    missing.push("there is nothing to compare its measurement with: no pin, and none on the VM");
  return missing;
}

/** What its time says against relying on it. */
function agesOf(
  { now, vm, staleAfterMs, notBefore }: AppraisalInput,
  report: AttestationReport | undefined,
  madeAt: number | undefined,
): string[] {
  if (report === undefined) return [];
  if (madeAt === undefined) {
    const needsTime = staleAfterMs !== undefined || notBefore !== undefined;
    return needsTime ? ["the report doesn't say when it was made"] : [];
  }
  const createdAt = timeOf(vm.createdAt);
  const ages: string[] = [];
  if (madeAt > now + clockSkewMs) ages.push("the report is dated in the future");
  if (createdAt !== undefined && madeAt < createdAt - clockSkewMs)
    ages.push("the report is older than the VM");
  if (notBefore !== undefined && madeAt < notBefore - changeSkewMs)
    ages.push("the report is still the one from before the change");
  if (staleAfterMs !== undefined && now - madeAt > staleAfterMs) ages.push("the report is too old");
  return ages;
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

export interface Attested {
  vm: Vm;
  appraisal: Appraisal;
  /** As the service gave it, when it did. */
  report?: AttestationReport;
}

/**
 * Reads a VM and its report and compares them. Rejects only when the VM itself can't be read; without a report the
 * result is `could not verify`. `pins` are those for this VM.
 */
export async function attest(
  vmId: string,
  options: {
    compute: Pick<Compute, "vms">;
    pins: readonly string[];
    now(): number;
    staleAfterMs?: number | undefined;
    notBefore?: number | undefined;
    signal?: AbortSignal | undefined;
  },
): Promise<Attested> {
  const { compute, pins, staleAfterMs, notBefore, signal } = options;
  const [vm, report] = await Promise.all([
    compute.vms.get(vmId, { signal }),
    compute.vms.attestation(vmId, { signal }).catch((error: unknown) => ({ error })),
  ]);
  const appraisal = appraise({ vm, report, pins, now: options.now(), staleAfterMs, notBefore });
  return { vm, appraisal, ...("error" in report ? {} : { report }) };
}

/**
 * The measurements that policy allows for a target, by any of its names (name, id, `project/name`); empty when no pin
 * speaks of it. Several pins that match add up.
 */
export function pinsFor(pins: readonly Pin[], names: readonly string[]): readonly string[] {
  const matching = pins.filter(({ targets }) =>
    targets.some((glob) => names.some((name) => matchesGlob(glob, name))),
  );
  return [...new Set(matching.flatMap(({ measurements }) => measurements))];
}
