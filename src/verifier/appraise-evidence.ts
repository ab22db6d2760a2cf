import { dayNear } from "../text/time-words.ts";
import { type Allowance, type AppraisalPolicy, matches } from "./appraisal-policy.ts";
import type { AppraisalOptions, AttestationResult, Claims, Weighed } from "./attestation-result.ts";
import { sentenceOf, standingOf, updateWords } from "./reasons.ts";
import type { Product } from "./roots.ts";
import { partsBelow, type SnpFacts, tcbParts } from "./snp/report.ts";
import { isMasked } from "./snp/verify-report.ts";
import type { EvidenceFacts, Verification } from "./verification.ts";

export const dayMs = 86_400_000;
export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/**
 * Appraises verified evidence by the policy, by the pins of the VM, and by what else is known
 * against it. The verdict is `failed` when anything contradicts, or is less than current and the
 * policy doesn't accept it by name. It is `verified` when hardware, executables, and configuration
 * are all affirmed. Otherwise it is `could not verify`.
 */
export function appraiseEvidence(
  verification: Verification,
  options: AppraisalOptions,
): AttestationResult {
  const { facts } = verification;
  const weighed: Weighed[] = [];
  const on =
    (claim: keyof Claims): Add =>
    (effect, code, says, more) =>
      void weighed.push({ claim, effect, code, says, ...more });
  weighHardware(verification, options, on("hardware"));
  if (facts) weighConfiguration(facts, options.policy, on("configuration"));
  if (facts) weighExecutables(facts, options, on("executables"));
  weighInstance(facts, options, on("instanceIdentity"));
  weighed.push(...(options.context?.against ?? []));
  const fails = weighed.filter(({ effect }) => effect === "fails");
  const lacks = weighed.filter(({ effect }) => effect === "lacks");
  const isAuthentic = verification.is === "authentic";
  const verdict = fails.length > 0 ? "failed" : lacks.length > 0 ? "could not verify" : "verified";
  const because = fails.length > 0 ? fails : lacks.length > 0 ? lacks : supportOf(verification);
  const claimed = (claim: keyof Claims, affirmed: number) =>
    worst(weighed, claim, isAuthentic ? affirmed : 0);
  return {
    // Without authentic hardware nothing is affirmed, whatever else matches.
    verdict: verdict === "verified" && !isAuthentic ? "could not verify" : verdict,
    claims: {
      hardware: claimed("hardware", 2),
      executables: claimed("executables", 3),
      configuration: claimed("configuration", 2),
      instanceIdentity: claimed("instanceIdentity", 0),
    } as Claims,
    reasons: because
      .filter(({ says }, at) => because.findIndex((other) => other.says === says) === at)
      .map(({ code, says }) => ({ code, says })),
    notes: [
      ...weighed.flatMap(({ effect, says }) => (effect === "note" ? [says] : [])),
      ...notesOf(verification, options),
    ],
    short: fails.flatMap(({ short = [] }) => short),
    isAlarm: verification.problems.some((problem) => standingOf(problem) === "tampered"),
    verification,
  };
}

const usualValues = { fails: 96, lacks: 0, note: 2 } as const;

/**
 * The worst value found for a claim. From worst to best: a contradiction, a warning, no
 * information, an affirming value.
 */
function worst(weighed: readonly Weighed[], claim: keyof Claims, otherwise: number): number {
  const rank = (value: number) => (value >= 32 ? value : value === 0 ? 31 : value);
  const values = weighed
    .filter((finding) => finding.claim === claim)
    .map(({ effect, value = usualValues[effect] }) => value);
  return values.reduce((a, b) => (rank(b) > rank(a) ? b : a), otherwise);
}

/** Records a finding about one claim. */
type Add = (
  effect: Weighed["effect"],
  code: Weighed["code"],
  says: string,
  more?: Partial<Weighed>,
) => void;

const cryptographic = /signature$|^chain-|^qe-report-data$|^report-(reserved|unsigned)$/;

/** Weighs the hardware claim: which keys vouch for the machine, and how current its firmware is. */
function weighHardware(
  { problems, facts, tcb, product, endorsedAt }: Verification,
  { policy, now }: AppraisalOptions,
  add: Add,
): void {
  for (const problem of problems) {
    const { reason, short } = problem;
    const isContradicted = standingOf(problem) === "contradicts";
    const value = isContradicted && cryptographic.test(reason) ? 99 : undefined;
    add(isContradicted ? "fails" : "lacks", reason, sentenceOf(problem), { short, value });
  }
  /** Adds a warning, which makes the appraisal fail unless the policy accepts it by name. */
  const warn = (code: Weighed["code"], isNamed: boolean, says: string, short?: Weighed["short"]) =>
    add(isNamed ? "note" : "fails", code, says, { value: 32, short });
  if (tcb && tcb.status !== "UpToDate") {
    const isAccepted = policy.statuses.some(
      ({ status, advisories, until }) =>
        status === tcb.status &&
        now <= until &&
        tcb.advisories.every((id) => advisories.includes(id)),
    );
    const ids = tcb.advisories.length > 0 ? ` (${tcb.advisories.join(", ")})` : "";
    const { short = [], date } = tcb;
    const why =
      short.length > 0 ? `: ${updateWords(short)}` : `, at its level of ${date.slice(0, 10)}`;
    warn("tcb-status", isAccepted, `Intel calls the platform ${tcb.status}${ids}${why}`, short);
  }
  if (product === "Milan")
    warn(
      "known-broken-product",
      policy.allows.includes("known-broken-product"),
      "the root seed of Milan processors can be read out by software (arXiv 2605.12990)",
    );
  if (facts?.tee === "snp" && product) weighFirmware(facts, product, policy, add);
  const { maxEndorsementAgeMs = Infinity } = policy;
  if (endorsedAt !== undefined && now - endorsedAt > maxEndorsementAgeMs) {
    const says = `the vendor's lists are older than policy allows: they date from ${dayNear(endorsedAt, now)}`;
    add("lacks", "endorsement-age", says);
  }
}

/** Steps that are needed in addition to the update of the running firmware. */
const fixes = { committed: "the host must commit its update", launch: "then restart the VM" };

/**
 * Compares three versions with the minimum: the running one, the one that it can't be rolled back
 * below, and the one that the VM was started with.
 */
function weighFirmware(
  { cpuid, currentTcb, committedTcb, launchTcb }: SnpFacts,
  product: Product,
  { minimumTcb }: AppraisalPolicy,
  add: Add,
): void {
  const ofProduct = minimumTcb.filter((minimum) => minimum.product === product);
  const model = cpuid?.model;
  const applying = ofProduct.filter(
    ({ models }) => models === undefined || (model !== undefined && models.includes(model)),
  );
  const unjudged = "Firmware level not judged: policy names no minimum for this product";
  const unnamed = `policy names no minimum firmware for this model (${model ?? "unknown"})`;
  if (ofProduct.length === 0) add("note", "minimum-tcb", unjudged);
  else if (applying.length === 0) add("lacks", "minimum-unknown", unnamed);
  const versions = { current: currentTcb, committed: committedTcb, launch: launchTcb };
  for (const { tcb } of applying)
    for (const [name, hex] of Object.entries(versions))
      for (const shortfall of partsBelow(tcbParts(hex, product), tcb)) {
        const { part, has, needs, by: updateTarget } = shortfall;
        const fix = fixes[name as keyof typeof fixes] ?? `update the ${updateTarget}`;
        const says = `the ${name} firmware is below the minimum: ${part} ${has} is below ${needs} (${fix})`;
        add("fails", "minimum-tcb", says, { short: name === "current" ? [shortfall] : [] });
      }
}

/** Conditions of a VM that genuine evidence may show and that its users wouldn't want. */
type Finding = Exclude<Allowance, "known-broken-product"> | "unbound" | "sept-ve-disable-off";

const bit = (bits: bigint, at: number) => (bits & (1n << BigInt(at))) !== 0n;
const isZero = (hex: string) => /^0*$/.test(hex);

export function findingsOf(facts: EvidenceFacts): readonly Finding[] {
  const candidates: [Finding, boolean][] =
    facts.tee === "snp"
      ? [
          ["debug", bit(facts.policy, 19)],
          ["migration-agent", bit(facts.policy, 18)],
          ["chip-masked", isMasked(facts)],
        ]
      : tdxFindings(Buffer.from(facts.tdAttributes, "hex").readBigUInt64LE(), facts.mrServiceTd);
  candidates.push(["unbound", isZero(facts.reportData)]);
  return candidates.flatMap(([finding, isSo]) => (isSo ? [finding] : []));
}

/**
 * Bits 0 to 7 let the host inspect the TD: 0 is debugging, 4 to 6 are profiling, the rest is
 * reserved.
 */
function tdxFindings(attributes: bigint, mrServiceTd: string | undefined): [Finding, boolean][] {
  return [
    ["debug", (attributes & 0xffn) !== 0n],
    ["migratable", bit(attributes, 29)],
    ["service-td", mrServiceTd !== undefined && !isZero(mrServiceTd)],
    ["sept-ve-disable-off", !bit(attributes, 28)],
  ];
}

const warnings = {
  debug: "debugging is on: the host can read the VM's memory",
  "migration-agent": "the VM may be moved by a migration agent",
  migratable: "the VM may be moved to another host",
  "service-td": "a service TD is bound to the VM",
  "chip-masked": "the report doesn't say which chip it is from",
} as const;

/** The VMPL of a report that the host requested, not the VM: 0xFFFFFFFF. */
const hostVmpl = 0xffff_ffff;

function weighConfiguration(
  facts: EvidenceFacts,
  { allows, vmpl }: AppraisalPolicy,
  add: Add,
): void {
  for (const code of findingsOf(facts)) {
    if (code === "unbound" || code === "sept-ve-disable-off") continue;
    if (allows.includes(code)) add("note", code, warnings[code], { value: 36 });
    else add("fails", code, warnings[code]);
  }
  if (facts.tee !== "snp" || facts.vmpl === vmpl) return;
  if (facts.vmpl === hostVmpl)
    add("fails", "host-requested", "the host asked for the report, not the VM");
  else add("fails", "vmpl", `the report was asked for at VMPL ${facts.vmpl}, policy says ${vmpl}`);
}

function weighExecutables(
  facts: EvidenceFacts,
  { references, context }: AppraisalOptions,
  add: Add,
): void {
  if (references.length === 0)
    add("lacks", "no-reference-value", "no measurement is pinned for this VM");
  else if (references.every((pin) => matches(pin, facts) === undefined))
    add("fails", "measurement", "the measurement matches no pin");
  const named = context?.service?.measurement;
  const own = facts.tee === "snp" ? [facts.measurement] : [facts.mrTd, ...facts.rtmr];
  if (named !== undefined && !own.includes(named)) {
    const says = "the compute service names a measurement that the report doesn't have";
    add("fails", "service-measurement", says);
  }
}

function weighInstance(
  facts: EvidenceFacts | undefined,
  { context = {}, policy }: AppraisalOptions,
  add: Add,
): void {
  if (context.service?.verified === false) {
    const says = "the compute service says the report is not verified";
    add("fails", "service-denies", says, { claim: undefined });
  }
  if (context.seen === "under another VM") add("fails", "another-vm", "the report is another VM's");
  if (context.seen === "before the change")
    add("lacks", "before-change", "the report is still the one from before the change");
  const { expectedReportData } = context;
  if (facts && expectedReportData !== undefined && facts.reportData !== expectedReportData)
    add("fails", "report-data", "the report is bound to something else");
  else if (facts && expectedReportData !== undefined)
    add("note", "binding", "The report is bound to what was asked");
  else if (facts && policy.needsBinding)
    add("lacks", "binding", "policy needs a report that is bound to a nonce, and there is none");
}

function supportOf({ facts, tcb }: Verification): readonly Pick<Weighed, "code" | "says">[] {
  const vendor = facts?.tee === "tdx" ? "Intel's" : "AMD's";
  const level = tcb?.status === "UpToDate" ? ["the firmware is current"] : [];
  return [`${vendor} signature holds`, ...level, "the measurement is pinned"].map((says) => ({
    code: "supported" as const,
    says,
  }));
}

/**
 * Fields that the owner or the host sets and that no pin covers. Fields that are all zero are left
 * out.
 */
function uncheckedIn(facts: EvidenceFacts): readonly string[] {
  const fields =
    facts.tee === "snp"
      ? {
          HOST_DATA: facts.hostData,
          ID_KEY_DIGEST: facts.idKeyDigest,
          AUTHOR_KEY_DIGEST: facts.authorKeyDigest,
        }
      : {
          MRCONFIGID: facts.mrConfigId,
          MROWNER: facts.mrOwner,
          MROWNERCONFIG: facts.mrOwnerConfig,
          RTMR3: facts.rtmr[3],
        };
  return Object.entries(fields).flatMap(([name, value]) => (isZero(value) ? [] : [name]));
}

/** Further facts that a reader should know, apart from the verdict. */
function notesOf(
  { facts, endorsedAt, tcb }: Verification,
  { context, references, now }: AppraisalOptions,
): string[] {
  if (!facts) return [];
  const notes: string[] = [];
  if (context?.expectedReportData === undefined)
    notes.push("Not fresh: the compute service takes no nonce, so a stored report looks the same");
  const findings = findingsOf(facts);
  if (findings.includes("unbound")) notes.push("Bound to nothing: its report data is empty");
  const unchecked = uncheckedIn(facts);
  if (unchecked.length > 0) notes.push(`Neither pinned nor checked: ${unchecked.join(", ")}`);
  if (findings.includes("sept-ve-disable-off"))
    notes.push("SEPT_VE_DISABLE is off, as Azure runs its VMs");
  const pinMatches = references.map((pin) => matches(pin, facts));
  if (pinMatches.includes("in part") && !pinMatches.includes("whole"))
    notes.push("Only the firmware (MRTD) is pinned: RTMR0 to RTMR2 are not");
  if (facts.tee === "snp" && facts.currentTcb !== facts.committedTcb)
    notes.push("The firmware is provisional: newer than what is committed");
  if (tcb?.status.startsWith("TDRelaunchAdvised"))
    notes.push("The host is patched, the VM started before: restart it");
  const serviceVerdict = context?.service?.verified;
  if (serviceVerdict !== undefined)
    notes.push(
      `The service's own verdict (${serviceVerdict ? "verified" : "not verified"}) isn't used`,
    );
  if (endorsedAt !== undefined) {
    const days = Math.floor((now - endorsedAt) / dayMs);
    notes.push(`The vendor's lists date from ${dayNear(endorsedAt, now)} (${days} days ago)`);
  }
  return notes;
}
