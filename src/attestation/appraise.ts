import type { AttestationReport, Vm } from "../compute/compute.ts";
import { plain } from "../messages/text.ts";
import { difference, nearestOf } from "./difference.ts";
import { type Evidence, readEvidence } from "./evidence.ts";
import { agesOf, failuresOf, missingOf, timeOf } from "./findings.ts";
import { normalise, short } from "./measurement.ts";

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
  return text?.trim() ? normalise(text) : undefined;
}

function measurementsOf(
  { vm, pins }: AppraisalInput,
  report: AttestationReport | undefined,
): Appraisal["measurement"] {
  const [ofReport, ofVm] = [known(report?.measurement), known(vm.attestation?.measurement)];
  const allowed = pins.map((pin) => normalise(pin));
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
  const support = ["the service says the report is verified"];
  if (matchesVm) support.push("its measurement is the VM's");
  if (matchesPin) support.push("it is one of the pinned ones");
  return support;
}

function notesOf(
  { report: claimed, pins }: Appraisal["measurement"],
  evidence: Evidence,
  isThere: boolean,
): string[] {
  const notes: string[] = [];
  if (isThere) {
    notes.push("“Verified” is the provider's claim: Gatehouse checks no signature");
    notes.push("Not fresh: the service takes no nonce, so a stored report looks the same");
  }
  if (evidence.is === "unknown") notes.push("The raw report's format isn't one that is known here");
  if (evidence.is === "read") {
    const its = evidence.registers.find(({ value }) => value === claimed);
    const sizes = `${(evidence.registers[0]?.value.length ?? 0) / 2} bytes`;
    notes.push(
      its
        ? `${its.name} of the raw ${evidence.format} is the measurement`
        : `The raw report is an ${evidence.format}, its measurements have ${sizes}`,
    );
  }
  if (pins.length === 0) notes.push("No pin is set for this VM: any measurement would do");
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
