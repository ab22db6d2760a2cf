import { type AttestationReport, statusFacts } from "../compute/compute.ts";
import { ComputeError } from "../compute/errors.ts";
import { plain } from "../messages/text.ts";
import type { AppraisalReason, AttestationResult } from "../verifier/attestation-result.ts";
import type { Appraisal, AppraisalInput } from "./appraisal.ts";

/** Clocks of two machines are seldom the same. */
const clockSkewMs = 60_000;
/** Less is allowed where the report from right before a change would pass for the one after it. */
const changeSkewMs = 5_000;

/** What is missing; `policy` and `service` beside the codes of the verifier. */
export type Lack = Omit<AppraisalReason, "code"> & {
  code: AppraisalReason["code"] | "policy" | "service";
};

/** The service isn't a witness against evidence: of a VM that is pinned, or was attested before, its word ends nothing. */
export const isOff = (input: AppraisalInput): boolean =>
  isSaidOff(input) && !isPinned(input) && input.attestedAt === undefined;

/** A pin that doesn't count asks for as much as one that does. */
export const isPinned = ({ pins, pinDoubt }: Pick<AppraisalInput, "pins" | "pinDoubt">): boolean =>
  pins.length > 0 || pinDoubt !== undefined;

const isSaidOff = ({ vm, report }: Pick<AppraisalInput, "vm" | "report">): boolean =>
  vm.attestation?.enabled === false || ("error" in report && vm.attestation?.enabled !== true);

/** The VM runs, and there is no report, though the service can be asked. */
export function isWithheld({ vm, report }: Pick<AppraisalInput, "vm" | "report">): boolean {
  if (!statusFacts(vm.status ?? "").isRunning) return false;
  if (!("error" in report)) return report.report === undefined;
  const { error } = report;
  return !(error instanceof ComputeError) || !["unreachable", "busy"].includes(error.kind);
}

/** Nobody asked for it in gatehouse.yml. */
export const isForPolicy = (code: Lack["code"]) =>
  code === "policy" || code === "no-reference-value";

/** Evidence that is broken is so with and without endorsements. */
const broken = /^(evidence-(missing|encoding|too-long)|(quote|report)-truncated)$/;

/** What would be needed to say more. */
export function lacksOf(
  input: AppraisalInput,
  report: AttestationReport | undefined,
  result: AttestationResult | undefined,
): readonly Lack[] {
  const { hasEndorsements } = input;
  const service = (says: string): Lack => ({ code: "service", says });
  if (isOff(input)) return [service("attestation is not enabled for this VM")];
  if (isSaidOff(input)) {
    const before = isPinned(input) ? "it is pinned" : "its evidence was seen before";
    return [
      service(`attestation is not enabled for this VM, says the compute service, but ${before}`),
    ];
  }
  if ("error" in input.report) return [service(whyNoReport(input.report.error))];
  if (!result) return [service("the compute service gave no raw report")];
  const lacks: readonly AppraisalReason[] =
    result.verdict === "could not verify" ? result.reasons : [];
  const isUnasked = ({ code }: AppraisalReason) =>
    !hasEndorsements &&
    result.verification.problems.some(({ reason }) => reason === code) &&
    !broken.test(code);
  const doubt = input.pinDoubt && doubts[input.pinDoubt];
  const kept = lacks.filter((lack) => !isUnasked(lack));
  const folded: Lack[] =
    kept.length === lacks.length
      ? []
      : [{ code: "policy", says: "gatehouse.yml names no endorsements to check signatures with" }];
  const said = kept.filter(({ code }) => doubt === undefined || code !== "no-reference-value");
  const unsure = doubt === undefined ? [] : [service(doubt)];
  return [...unsure, ...folded, ...said, ...agesOf(input, report).map(service)];
}

const doubts = {
  waits: "its approved pin waits to be sealed in the audit trail, for a second or so",
  forged: "its approved pin was not kept by Gatehouse, or under another bot token",
};

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

export function wayOutOf(
  lacks: readonly Lack[],
  { absent = [], pinDoubt }: AppraisalInput,
  { evidence }: Appraisal["measurement"],
): string | undefined {
  const codes = lacks.map(({ code }) => code);
  if (codes.includes("policy"))
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

function whyNoReport(error: unknown): string {
  if (!(error instanceof ComputeError)) return "the compute service gave no report";
  if (error.kind === "unreachable" || error.kind === "busy")
    return "the compute service can't be asked right now";
  if (error.kind === "unexpected") return "the compute service's answer can't be read";
  const said = error.serviceMessage ? `: ${plain(error.serviceMessage, 120)}` : "";
  return `the compute service gave no report (${error.status ?? error.kind})${said}`;
}

/** Milliseconds since the epoch; undefined when it can't be read. */
export function timeOf(text: string | undefined): number | undefined {
  const at = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
}
