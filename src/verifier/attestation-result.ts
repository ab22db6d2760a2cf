import type { AppraisalPolicy } from "./appraisal-policy.ts";
import type { Reason, Shortfall } from "./reasons.ts";
import type { Verification } from "./verification.ts";

/** What is known beside the evidence; all of it may be missing. */
export interface Context {
  /** What the compute service says. It never helps; only its no is repeated. */
  service?: { verified?: boolean | undefined; measurement?: string | undefined };
  /** Hex of what was to be put into the report, where a nonce was given. */
  expectedReportData?: string | undefined;
  /** What the register of earlier reports knows of these signed bytes or this report ID. */
  seen?: "before the change" | "under another VM" | undefined;
  /** What else speaks against relying on the evidence; nothing here can speak for it. */
  against?: readonly Weighed<"fails" | "lacks">[];
}

export interface AppraisalOptions {
  policy: AppraisalPolicy;
  /** The pins of this very VM (`pinOf`); empty when nothing is pinned. */
  references: readonly string[];
  context?: Context;
  /** Our clock, the same as for the verification. */
  now: number;
}

/** Values of AR4SI (draft-ietf-rats-ar4si): 2 and 3 affirm, 32 to 36 warn, 96 and 99 contradict, 0 says nothing. */
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

/** RFC 9334: what a verifier makes of evidence, for whom relies on it. */
export interface AttestationResult {
  verdict: "verified" | "failed" | "could not verify";
  claims: Claims;
  /** Why; what contradicts where it failed, what is missing where it could not be verified. Each once, and never empty. */
  reasons: readonly AppraisalReason[];
  notes: readonly string[];
  /** The parts of the platform that are too old, where that is why it failed. */
  short: readonly Shortfall[];
  /** Somebody changed what a vendor had signed. */
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
  // Of what is known beside the evidence
  | "no-report"
  | "no-endorsements"
  | "pin-doubt"
  | "record"
  | "age";

/** One thing that speaks against a claim, or that a reader should know. */
export interface Weighed<Effect = "fails" | "lacks" | "note"> extends AppraisalReason {
  effect: Effect;
  claim?: keyof Claims | undefined;
  short?: readonly Shortfall[] | undefined;
  /** Of the claim, where it isn't 96 for what fails, 0 for what lacks, and 2 for a note. */
  value?: number | undefined;
}
