import type { AppraisalInput } from "../../src/attestation/appraise.ts";
import type { AttestationReport } from "../../src/fleet/compute/compute.ts";
import { pinOf, strictPolicy } from "../../src/verifier/appraisal-policy.ts";
import type { EvidenceFacts, Verification } from "../../src/verifier/verification.ts";
import { verifyEncoded } from "../../src/verifier/verify-evidence.ts";
import { createJudging, createMints, mintedAt } from "../verifier/judging.ts";

export const now = mintedAt;
/** What minted evidence measures; MRTD for TDX. */
export const measurement = "ab".repeat(48);
export const otherMeasurement = "0f0e0d0c".repeat(12);

const { minted } = createJudging(createMints());

/** What stands in a minted report at these bytes before it is signed. */
export type Change = (bytes: Buffer) => void;

/** A good report of AMD's with its endorsements, but for what is changed. */
export const snp = (change: Change = () => undefined) => minted.snp({ report: change });
/** The same of Intel's; `change` gets the body of the quote. */
export const tdx = (change: Change = () => undefined) => minted.tdx({ body: change });
export type Minted = ReturnType<typeof snp>;

export const writes =
  (hex: string, at: number): Change =>
  (bytes) =>
    void bytes.write(hex, at, "hex");

export const verified = (
  { roots }: Minted,
  endorsements: Minted["endorsements"],
  report: AttestationReport,
  at = now,
): Verification => verifyEncoded(report.report, endorsements, { now: at, roots });

/** Where the service gave no report. */
export const unread = verifyEncoded(undefined, {}, { now });

export function reportOf(
  evidence: Minted,
  over: Partial<AttestationReport> = {},
): AttestationReport {
  const isTdx = "intel" in evidence.endorsements;
  return {
    report: evidence.bytes.toString("base64"),
    measurement,
    verified: true,
    timestamp: new Date(now - 60_000).toISOString(),
    platform: isTdx
      ? { vendor: "Intel", model: "Xeon (TDX)" }
      : { vendor: "AMD", model: "EPYC 9654", firmwareVersion: "1.55.37" },
    ...over,
  };
}

/** A pinned VM whose evidence is genuine, and a service that says the same, but for what is named. */
export function good({
  evidence = snp(),
  endorsements = evidence.endorsements,
  says = {},
  ...over
}: {
  evidence?: Minted;
  endorsements?: Minted["endorsements"];
  says?: Partial<AttestationReport>;
} & Partial<AppraisalInput> = {}): AppraisalInput {
  const report = reportOf(evidence, says);
  return {
    vm: {
      createdAt: new Date(now - 3_600_000).toISOString(),
      attestation: { enabled: true, measurement },
    },
    report,
    verification: verified(evidence, endorsements, report, over.now),
    pins: [pinFor(evidence)],
    policy: strictPolicy,
    hasEndorsements: true,
    now,
    ...over,
  };
}

/** The pin that fits minted evidence as it is without changes. */
export function pinFor(evidence: Minted): string {
  const usual = "intel" in evidence.endorsements ? tdx() : snp();
  return pinOf(verified(usual, usual.endorsements, reportOf(usual)).facts as EvidenceFacts);
}
