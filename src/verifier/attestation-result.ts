import type { AppraisalPolicy } from "./appraisal-policy.ts";
import type { Reason, Shortfall } from "./reasons.ts";
import type { Verification } from "./verification.ts";

/** Facts that are known in addition to the evidence. Any part may be missing. */
export interface Context {
  /**
   * The compute service's statement about the report. If it is positive, it counts for nothing; if
   * it is negative, it counts.
   */
  service?: { verified?: boolean | undefined; measurement?: string | undefined };
  /** The report data (hex) that the report should contain, if a nonce was given. */
  expectedReportData?: string | undefined;
  /** The finding of the register of earlier reports about these signed bytes or this report ID. */
  seen?: "before the change" | "under another VM" | undefined;
  /** Further findings against relying on the evidence. None of them can count in its favor. */
  against?: readonly Weighed<"fails" | "lacks">[];
}

export interface AppraisalOptions {
  policy: AppraisalPolicy;
  /** The pins of this VM (`pinOf`). Empty when nothing is pinned. */
  references: readonly string[];
  context?: Context;
  /** Our own clock, the same as for the verification (ms). */
  now: number;
}

/**
 * Values of AR4SI (draft-ietf-rats-ar4si): 2 and 3 affirm, 32 to 36 warn, 96 and 99 contradict, 0
 * says nothing.
 */
export interface Claims {
  hardware: 0 | 2 | 32 | 96 | 99;
  executables: 0 | 3 | 33 | 96;
  configuration: 0 | 2 | 32 | 36 | 96;
  instanceIdentity: 0 | 2 | 96;
}

export interface AppraisalReason {
  code: Reason | PolicyReason;
  /** Without a full stop. */
  says: string;
}

/**
 * The attestation result in the sense of RFC 9334: what a verifier concludes from evidence, for a
 * relying party.
 */
export interface AttestationResult {
  verdict: "verified" | "failed" | "could not verify";
  claims: Claims;
  /**
   * The reasons for the verdict: what contradicts when it failed, what is missing when it could not
   * be verified. No reason appears twice, and there is at least one.
   */
  reasons: readonly AppraisalReason[];
  notes: readonly string[];
  /** The parts of the platform whose age made the appraisal fail. */
  short: readonly Shortfall[];
  /** True when something that a vendor had signed was changed. */
  isAlarm: boolean;
  verification: Verification;
}

export type PolicyReason =
  | "tcb-status"
  | "known-broken-product"
  | "minimum-tcb"
  | "minimum-unknown"
  | "endorsement-age"
  | "no-reference-value"
  | "measurement"
  | "service-measurement"
  | "service-denies"
  | "debug"
  | "migration-agent"
  | "migratable"
  | "service-td"
  | "chip-masked"
  | "vmpl"
  | "host-requested"
  | "binding"
  | "report-data"
  | "another-vm"
  | "before-change"
  | "supported"
  // These are about facts that are known in addition to the evidence.
  | "no-report"
  | "no-endorsements"
  | "pin-doubt"
  | "record"
  | "age";

/** A finding against a claim, or a note for the reader. */
export interface Weighed<Effect = "fails" | "lacks" | "note"> extends AppraisalReason {
  effect: Effect;
  claim?: keyof Claims | undefined;
  short?: readonly Shortfall[] | undefined;
  /**
   * The claim's value, unless it is the usual one: 96 for `fails`, 0 for `lacks`, and 2 for `note`.
   */
  value?: number | undefined;
}
