import { type AppraisalPolicy, matches } from "./appraisal-policy.ts";
import type { AppraisalOptions, AttestationResult, Claims, Weighed } from "./attestation-result.ts";
import { findingsOf } from "./findings.ts";
import { standingOf } from "./reasons.ts";
import type { Facts, Verification } from "./verification.ts";
import { weighHardware } from "./weigh-hardware.ts";

const dayMs = 86_400_000;
const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);

/**
 * Weighs what was verified by a policy and by what is expected of the VM. Failed when anything contradicts or is short of
 * current without the policy naming it; verified when hardware, executables, and configuration are all affirmed; else it
 * could not be verified.
 */
export function appraiseEvidence(
  verification: Verification,
  options: AppraisalOptions,
): AttestationResult {
  const { facts } = verification;
  const weighed = [
    ...weighHardware(verification, options),
    ...(facts ? weighConfiguration(facts, options.policy) : []),
    ...(facts ? weighExecutables(facts, options) : []),
    ...weighInstance(facts, options),
  ];
  const fails = weighed.filter(({ effect }) => effect === "fails");
  const lacks = weighed.filter(({ effect }) => effect === "lacks");
  const isAuthentic = verification.is === "authentic";
  const verdict = fails.length > 0 ? "failed" : lacks.length > 0 ? "could not verify" : "verified";
  const because = fails.length > 0 ? fails : lacks.length > 0 ? lacks : supportOf(verification);
  return {
    // Without hardware behind it nothing is affirmed, whatever else fits
    verdict: verdict === "verified" && !isAuthentic ? "could not verify" : verdict,
    claims: {
      hardware: worst(weighed, "hardware", isAuthentic ? 2 : 0) as Claims["hardware"],
      executables: worst(weighed, "executables", isAuthentic ? 3 : 0) as Claims["executables"],
      configuration: worst(
        weighed,
        "configuration",
        isAuthentic ? 2 : 0,
      ) as Claims["configuration"],
      instanceIdentity: worst(weighed, "instanceIdentity", 0) as Claims["instanceIdentity"],
    },
    reasons: because.map(({ code, says }) => ({ code, says })),
    notes: [
      ...weighed.flatMap(({ effect, says }) => (effect === "note" ? [says] : [])),
      ...notesOf(verification, options),
    ],
    isAlarm: verification.problems.some((problem) => standingOf(problem) === "tampered"),
    verification,
  };
}

/** Contradictions are worse than warnings, those worse than knowing nothing, that worse than any yes. */
function worst(weighed: readonly Weighed[], claim: keyof Claims, otherwise: number): number {
  const rank = (value: number) => (value >= 32 ? value : value === 0 ? 31 : value);
  const values = weighed.filter((one) => one.claim === claim).map(({ value }) => value);
  return values.reduce((a, b) => (rank(b) > rank(a) ? b : a), otherwise);
}

const warnings = {
  debug: "debugging is on: the host can read the VM's memory",
  "migration-agent": "the VM may be moved by a migration agent",
  migratable: "the VM may be moved to another host",
  "service-td": "a service TD is bound to the VM",
  "chip-masked": "the report doesn't say which chip it is from",
} as const;

/** 0xFFFFFFFF: the host asked for the report, not the VM. */
const hostVmpl = 0xffff_ffff;

function weighConfiguration(facts: Facts, { allows, vmpl }: AppraisalPolicy): readonly Weighed[] {
  const claim = "configuration" as const;
  const weighed: Weighed[] = findingsOf(facts).flatMap((code): Weighed[] => {
    if (code === "unbound" || code === "sept-ve-disable-off") return [];
    const isNamed = allows.includes(code);
    const weight = { value: isNamed ? 36 : 96, effect: isNamed ? "note" : "fails" } as const;
    return [{ claim, ...weight, code, says: warnings[code] }];
  });
  if (facts.tee !== "snp" || facts.vmpl === vmpl) return weighed;
  const isHost = facts.vmpl === hostVmpl;
  const says = isHost
    ? "the host asked for the report, not the VM"
    : `the report was asked for at VMPL ${facts.vmpl}, policy says ${vmpl}`;
  const code = isHost ? "host-requested" : "vmpl";
  return [...weighed, { claim, value: 96, effect: "fails", code, says }];
}

function weighExecutables(
  facts: Facts,
  { references, context }: AppraisalOptions,
): readonly Weighed[] {
  const claim = "executables" as const;
  const weighed: Weighed[] = [];
  const found = references.map((one) => matches(one, facts));
  if (references.length === 0)
    weighed.push({
      claim,
      value: 0,
      effect: "lacks",
      code: "no-reference-value",
      says: "no measurement is pinned for this VM",
    });
  else if (found.every((match) => match === undefined))
    weighed.push({
      claim,
      value: 96,
      effect: "fails",
      code: "measurement",
      says: "the measurement matches no pin",
    });
  const named = context?.service?.measurement;
  const own = facts.tee === "snp" ? [facts.measurement] : [facts.mrTd, ...facts.rtmr];
  if (named !== undefined && !own.includes(named))
    weighed.push({
      claim,
      value: 96,
      effect: "fails",
      code: "service-measurement",
      says: "the compute service names a measurement that the report doesn't have",
    });
  return weighed;
}

function weighInstance(
  facts: Facts | undefined,
  { context = {}, policy }: AppraisalOptions,
): readonly Weighed[] {
  const claim = "instanceIdentity" as const;
  const weighed: Weighed[] = [];
  const add = (
    effect: Weighed["effect"],
    value: number,
    code: Weighed["code"],
    says: string,
  ): void => void weighed.push({ claim, value, effect, code, says });
  if (context.service?.verified === false)
    weighed.push({
      value: 96,
      effect: "fails",
      code: "service-denies",
      says: "the compute service says the report is not verified",
    });
  if (context.seen === "under another VM")
    add("fails", 96, "another-vm", "the report is another VM's");
  if (context.seen === "before the change")
    add("lacks", 0, "before-change", "the report is still the one from before the change");
  const { expectedReportData } = context;
  if (facts && expectedReportData !== undefined && facts.reportData !== expectedReportData)
    add("fails", 96, "report-data", "the report is bound to something else");
  else if (facts && expectedReportData !== undefined)
    add("note", 2, "binding", "The report is bound to what was asked");
  else if (facts && policy.needsBinding)
    add("lacks", 0, "binding", "policy needs a report that is bound to a nonce, and there is none");
  return weighed;
}

function supportOf({ facts, tcb }: Verification): readonly Pick<Weighed, "code" | "says">[] {
  const vendor = facts?.tee === "tdx" ? "Intel's" : "AMD's";
  const level = tcb?.status === "UpToDate" ? ["the firmware is current"] : [];
  return [`${vendor} signature holds`, ...level, "the measurement is pinned"].map((says) => ({
    code: "supported" as const,
    says,
  }));
}

/** Fields that owner or host set, and that no pin covers; of those that are all zero there is nothing to say. */
function uncheckedIn(facts: Facts): readonly string[] {
  const fields: readonly (readonly [string, string])[] =
    facts.tee === "snp"
      ? [
          ["HOST_DATA", facts.hostData],
          ["ID_KEY_DIGEST", facts.idKeyDigest],
          ["AUTHOR_KEY_DIGEST", facts.authorKeyDigest],
        ]
      : [
          ["MRCONFIGID", facts.mrConfigId],
          ["MROWNER", facts.mrOwner],
          ["MROWNERCONFIG", facts.mrOwnerConfig],
          ["RTMR3", facts.rtmr[3]],
        ];
  return fields.flatMap(([name, value]) => (/^0*$/.test(value) ? [] : [name]));
}

/** What a reader should know beside the verdict. */
function notesOf(
  { facts, endorsedAt, tcb }: Verification,
  { context, references, now }: AppraisalOptions,
): string[] {
  const notes: string[] = [];
  if (!facts) return notes;
  if (context?.expectedReportData === undefined)
    notes.push("Not fresh: the compute service takes no nonce, so a stored report looks the same");
  const findings = findingsOf(facts);
  if (findings.includes("unbound")) notes.push("Bound to nothing: its report data is empty");
  const unchecked = uncheckedIn(facts);
  if (unchecked.length > 0) notes.push(`Neither pinned nor checked: ${unchecked.join(", ")}`);
  if (findings.includes("sept-ve-disable-off"))
    notes.push("SEPT_VE_DISABLE is off, as Azure runs its VMs");
  const found = references.map((one) => matches(one, facts));
  if (found.includes("in part") && !found.includes("whole"))
    notes.push("Only the firmware (MRTD) is pinned: RTMR0 to RTMR2 are not");
  if (facts.tee === "snp" && facts.currentTcb !== facts.committedTcb)
    notes.push("The firmware is provisional: newer than what is committed");
  if (tcb?.status.startsWith("TDRelaunchAdvised"))
    notes.push("The host is patched, the VM started before: restart it");
  if (context?.service?.verified !== undefined)
    notes.push(
      `The compute service says ${context.service.verified ? "verified" : "not verified"}; it doesn't count`,
    );
  if (endorsedAt !== undefined) {
    const days = Math.floor((now - endorsedAt) / dayMs);
    notes.push(`The vendor's lists are of ${dayOf(endorsedAt)} (${days} days old)`);
  }
  return notes;
}
