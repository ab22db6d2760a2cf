import type { Examination, TimeSpan } from "./examination.ts";
import { type Problem, standingOf } from "./reasons.ts";
import type { Product } from "./roots.ts";
import { sha256 } from "./signature.ts";
import type { SnpFacts } from "./snp/report.ts";
import type { TdxFacts } from "./tdx/quote.ts";
import type { TcbStanding } from "./tdx/tcb.ts";

export type EvidenceFacts = TdxFacts | SnpFacts;

/** The content of the evidence, and the findings of its checks. */
interface Seen {
  facts: EvidenceFacts;
  /**
   * SHA-256 of the signed bytes, which identifies the report. The signature can't, because each
   * signature has a second valid form.
   */
  digest: string;
  /** Intel's statement about the firmware, the TDX module, and the quoting enclave. */
  tcb?: TcbStanding | undefined;
  product?: Product | undefined;
  /** When the oldest of the endorsements that are renewed regularly was issued (ms). */
  endorsedAt?: number | undefined;
}

/**
 * The result of checking evidence, independent of any policy. `authentic`: it comes from a genuine
 * machine, all signatures hold, nothing is revoked, and everything is within its validity.
 * `rejected`: something contradicts. `unverifiable`: something is missing. Problems are in the
 * order of the checks.
 */
export type Verification =
  | (Seen & { is: "authentic"; problems: readonly []; validity: TimeSpan & { endsWith: string } })
  | (Partial<Seen> & {
      is: "rejected" | "unverifiable";
      problems: readonly [Problem, ...Problem[]];
    });

/** The result for evidence that contains nothing that could be checked. */
export function notReadable(problem: Problem): Verification {
  return { is: "unverifiable", problems: [problem] };
}

export function verificationOf(
  exam: Examination,
  { signed, ...evidence }: Pick<Seen, "facts" | "tcb" | "product"> & { signed: Buffer },
): Verification {
  const digest = sha256(signed).toString("hex");
  const seen: Seen = { ...evidence, digest, endorsedAt: exam.endorsedAt };
  const [first, ...more] = exam.problems;
  if (first === undefined) return { ...seen, is: "authentic", problems: [], validity: exam.span };
  // A contradiction outweighs something that is missing.
  const isContradicted = exam.problems.some((problem) => standingOf(problem) === "contradicts");
  return { ...seen, is: isContradicted ? "rejected" : "unverifiable", problems: [first, ...more] };
}
