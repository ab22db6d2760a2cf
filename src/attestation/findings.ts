import type { AttestationReport } from "../compute/compute.ts";
import { ComputeError } from "../compute/errors.ts";
import { plain } from "../messages/text.ts";
import type { Appraisal, AppraisalInput } from "./appraise.ts";
import type { Evidence } from "./evidence.ts";

/** Clocks of two machines are seldom the same. */
const clockSkewMs = 60_000;
/** Less is allowed where the report from right before a change would pass for the one after it. */
const changeSkewMs = 5_000;

/** What speaks against it, whatever else is missing. */
export function failuresOf(
  report: AttestationReport | undefined,
  evidence: Evidence,
  { report: claimed, matchesVm, matchesPin }: Appraisal["measurement"],
): string[] {
  const failures: string[] = [];
  if (report?.verified === false) failures.push("the service says the report is not verified");
  if (matchesPin === false) failures.push("its measurement is none of the pinned ones");
  if (matchesVm === false) failures.push("the report's measurement is not the VM's");
  if (evidence.is !== "read") return failures;
  const { registers, format, vendor } = evidence;
  const isComparable = registers.some(({ value }) => value.length === claimed?.length);
  if (isComparable && registers.every(({ value }) => value !== claimed))
    failures.push("the raw report holds another measurement than the service names");
  if (evidence.isDebug)
    failures.push("the raw report says that debugging is on: the host can read the VM's memory");
  const other = vendor === "AMD" ? /\bintel\b/i : /\bamd\b/i;
  if (other.test(report?.platform?.vendor ?? ""))
    failures.push(`the raw report is an ${format}, but the service names another platform`);
  return failures;
}

/** What would be needed to say more. */
export function missingOf(
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
    missing.push("the service doesn't say whether the report is verified");
  if (evidence.is === "missing") missing.push("the service shows no raw report");
  if (evidence.is === "damaged") missing.push(`the raw report can't be read: ${evidence.why}`);
  if (evidence.is === "read" && !evidence.isBound)
    missing.push("the raw report is bound to nothing (its report data is empty)");
  if (claimed === undefined) missing.push("the report names no measurement");
  else if (recorded === undefined && pins.length === 0)
    missing.push("there is nothing to compare its measurement with: no pin, and none on the VM");
  return missing;
}

/** What its time says against relying on it. */
export function agesOf(
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
  if (!(error instanceof ComputeError)) return "the service gave no report";
  if (error.kind === "unreachable" || error.kind === "busy")
    return "the service can't be asked right now";
  if (error.kind === "unexpected") return "the service's answer can't be read";
  const said = error.serviceMessage ? `: ${plain(error.serviceMessage, 120)}` : "";
  return `the service gave no report (${error.status ?? error.kind})${said}`;
}

/** Milliseconds since the epoch; undefined when it can't be read. */
export function timeOf(text: string | undefined): number | undefined {
  const at = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
}
