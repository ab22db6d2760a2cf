import type { Appraisal } from "../../attestation/appraise.ts";

/** What to do about a result, as a sentence without full stop. */
export function wayOut(appraisal: Appraisal): string | undefined {
  switch (appraisal.verdict) {
    case "could not verify":
      return wayOutOf(appraisal);
    case "failed":
      return nextStepOf(appraisal);
    default:
      return undefined;
  }
}

/** Whether something of a vendor's ran out, or is older than gatehouse.yml accepts. */
export const isExpiry = (code: Appraisal["codes"][number] | undefined): boolean =>
  code !== undefined && /expired|endorsement-age/.test(code);

function wayOutOf({ codes, absent, measurement }: Appraisal): string | undefined {
  const { pinDoubt, evidence } = measurement;
  if (codes.includes("no-endorsements"))
    return "`attestation.endorsements` in gatehouse.yml names the folder of what Intel and AMD have signed; docs/attestation.md says what belongs into it";
  if (absent.length > 0)
    return `Missing in the folder of endorsements: ${absent.join(", ")}; docs/attestation.md says where each comes from`;
  if (codes.some((code) => /^((crl|collateral)-malformed|vek-missing)$/.test(code)))
    return "Replace it in the folder of endorsements: `node gatehouse.mjs attestation status` names the file, docs/attestation.md where it comes from";
  if (codes.some(isExpiry))
    return "Renew the vendor's lists in the folder of endorsements; docs/attestation.md says where each comes from";
  if (pinDoubt === "forged")
    return "If nobody replaced the bot token, somebody wrote to Redis: see `node gatehouse.mjs audit verify`. `/gatehouse pins propose` asks others to approve what it measures now, `pins drop` to drop what is there";
  if (codes.includes("no-reference-value") && evidence !== undefined)
    return `If this is what should run, pin it: \`/gatehouse pins propose\` asks others to approve it, or write it under \`attestation.pins\` in gatehouse.yml: ${evidence}`;
  return undefined;
}

function nextStepOf({ result, isPinnable }: Appraisal): string {
  const { short, reasons, verification } = result;
  if (isPinnable)
    return "If it should run this, change its pin (one in gatehouse.yml wins); if not, stop the VM and find out who changed it";
  if (reasons.every(({ code }) => code === "debug"))
    return "Stop the VM, and have it started without debugging";
  const update = "Whoever runs the host must update it";
  if (short.length > 0 && verification.problems.every((problem) => problem.short))
    return verification.is !== "authentic"
      ? `${update}: no policy can accept this level`
      : `${update}. What to accept until then is under \`attestation.appraisal\` in gatehouse.yml`;
  return "Keep secrets from this VM until someone has explained this; `--evidence` gives an expert all that the result follows from";
}
