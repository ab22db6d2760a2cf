import type { MinimumTcb } from "./appraisal-policy.ts";
import type { AppraisalOptions, Weighed } from "./attestation-result.ts";
import { sentenceOf, standingOf } from "./reasons.ts";
import { partsBelow, type SnpFacts, tcbParts } from "./snp/report.ts";
import type { Verification } from "./verification.ts";

const cryptographic = /signature$|^chain-|^qe-report-data$|^report-(reserved|unsigned)$/;

/** The machine: what vouches for it, and how current its firmware is. */
export function weighHardware(
  verification: Verification,
  options: AppraisalOptions,
): readonly Weighed[] {
  const { policy, now } = options;
  const weighed: Weighed[] = verification.problems.map((problem) => {
    const says = sentenceOf(problem);
    if (standingOf(problem) !== "contradicts")
      return { claim: "hardware", value: 0, effect: "lacks", code: problem.reason, says };
    const value = cryptographic.test(problem.reason) ? 99 : 96;
    return { claim: "hardware", value, effect: "fails", code: problem.reason, says };
  });
  const { facts, tcb, product, endorsedAt } = verification;
  if (tcb && tcb.status !== "UpToDate") {
    const ids = tcb.advisories.length > 0 ? ` (${tcb.advisories.join(", ")})` : "";
    const says = `Intel calls the platform ${tcb.status} since ${tcb.date.slice(0, 10)}${ids}`;
    const isAccepted = policy.statuses.some(
      ({ status, advisories, until }) =>
        status === tcb.status &&
        now <= until &&
        tcb.advisories.every((id) => advisories.includes(id)),
    );
    const effect = isAccepted ? "note" : "fails";
    weighed.push({ claim: "hardware", value: 32, effect, code: "tcb-status", says });
  }
  if (product === "Milan")
    weighed.push({
      claim: "hardware",
      value: 32,
      effect: policy.allows.includes("known-broken-product") ? "note" : "fails",
      code: "known-broken-product",
      says: "the root seed of Milan processors can be read out by software (arXiv 2605.12990)",
    });
  if (facts?.tee === "snp" && product) weighed.push(...weighFirmware(facts, product, policy));
  const { maxEndorsementAgeMs = Infinity } = policy;
  if (endorsedAt !== undefined && now - endorsedAt > maxEndorsementAgeMs)
    weighed.push({
      claim: "hardware",
      value: 0,
      effect: "lacks",
      code: "endorsement-age",
      says: `the vendor's lists are older than policy allows: of ${new Date(endorsedAt).toISOString().slice(0, 10)}`,
    });
  return weighed;
}

/** Each of the three versions: what runs, what it can't go below, what the VM was started with. */
function weighFirmware(
  facts: SnpFacts,
  product: MinimumTcb["product"],
  { minimumTcb }: { minimumTcb: readonly MinimumTcb[] },
): readonly Weighed[] {
  const item = { claim: "hardware" } as const;
  const ofProduct = minimumTcb.filter((minimum) => minimum.product === product);
  if (ofProduct.length === 0)
    return [
      {
        value: 2,
        effect: "note",
        code: "minimum-tcb",
        says: "Firmware level not judged: policy names no minimum for this product",
      },
    ];
  const model = facts.cpuid?.model;
  const applying = ofProduct.filter(
    ({ models }) => models === undefined || (model !== undefined && models.includes(model)),
  );
  if (applying.length === 0)
    return [
      {
        ...item,
        value: 0,
        effect: "lacks",
        code: "minimum-unknown",
        says: `policy names no minimum firmware for this model (${model ?? "unknown"})`,
      },
    ];
  const versions = {
    current: facts.currentTcb,
    committed: facts.committedTcb,
    launch: facts.launchTcb,
  };
  return applying.flatMap(({ tcb }) =>
    Object.entries(versions).flatMap(([name, hex]) =>
      partsBelow(tcbParts(hex, product), tcb).map((part) => ({
        ...item,
        value: 96,
        effect: "fails" as const,
        code: "minimum-tcb" as const,
        says: `the ${name} firmware is below the minimum: ${part}`,
      })),
    ),
  );
}
