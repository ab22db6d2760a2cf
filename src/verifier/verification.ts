import type { Examination, TimeSpan } from "./examination.ts";
import { type Problem, standingOf } from "./reasons.ts";
import type { Product } from "./roots.ts";
import { sha256 } from "./signature.ts";
import type { SnpFacts } from "./snp/report.ts";
import type { TdxFacts } from "./tdx/quote.ts";
import type { TcbStanding } from "./tdx/tcb.ts";

export type EvidenceFacts = TdxFacts | SnpFacts;

/** What the evidence says, and what was found out about it beside. */
interface Seen {
  facts: EvidenceFacts;
  /** SHA-256 of the signed bytes: what a report goes by. Its signature is no name for it, since there are two of each. */
  digest: string;
  /** Intel's word on firmware, module, and quoting enclave. */
  tcb?: TcbStanding | undefined;
  product?: Product | undefined;
  /** When the oldest endorsement was made that is renewed from time to time. */
  endorsedAt?: number | undefined;
}

/**
 * What comes of checking evidence, whatever anybody's policy says. `authentic`: it is a genuine machine's, all signatures
 * hold, nothing is revoked, everything is in its time. `rejected`: something contradicts. `unverifiable`: something is
 * missing. Problems stand in the order of the checks.
 */
export type Verification =
  | (Seen & { is: "authentic"; problems: readonly []; validity: TimeSpan & { endsWith: string } })
  | (Partial<Seen> & {
      is: "rejected" | "unverifiable";
      problems: readonly [Problem, ...Problem[]];
    });

/** Evidence that says nothing that could be checked. */
export function notReadable(problem: Problem): Verification {
  return { is: "unverifiable", problems: [problem] };
}

export function verificationOf(
  exam: Examination,
  { signed, ...its }: Pick<Seen, "facts" | "tcb" | "product"> & { signed: Buffer },
): Verification {
  const digest = sha256(signed).toString("hex");
  const seen: Seen = { ...its, digest, endorsedAt: exam.endorsedAt };
  const [first, ...more] = exam.problems;
  if (first === undefined) return { ...seen, is: "authentic", problems: [], validity: exam.span };
  // A contradiction outweighs what is missing
  const isContradicted = exam.problems.some((one) => standingOf(one) === "contradicts");
  return { ...seen, is: isContradicted ? "rejected" : "unverifiable", problems: [first, ...more] };
}
