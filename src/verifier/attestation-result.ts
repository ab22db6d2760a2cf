import type { AppraisalPolicy, ReferenceValue } from "./appraisal-policy.ts";
import type { Reason } from "./reasons.ts";
import type { Verification } from "./verification.ts";

/** What is known beside the evidence; all of it may be missing. */
export interface Context {
  /** What the compute service says. It never helps; only its no is repeated. */
  service?: { verified?: boolean | undefined; measurement?: string | undefined };
  /** Hex of what was to be put into the report, where a nonce was given. */
  expectedReportData?: string;
  /** What the register of earlier reports knows of these signed bytes or this report ID. */
  seen?: "before the change" | "under another VM";
}

export interface AppraisalOptions {
  policy: AppraisalPolicy;
  /** Of this very VM; empty when nothing is pinned. */
  references: readonly ReferenceValue[];
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
  /** Why; what contradicts where it failed, what is missing where it could not be verified. Never empty. */
  reasons: readonly AppraisalReason[];
  notes: readonly string[];
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
  | "supported";

/** One thing that speaks for or against a claim, or that a reader should know. */
export interface Weighed {
  claim?: keyof Claims;
  value: number;
  effect: "fails" | "lacks" | "note";
  code: AppraisalReason["code"];
  says: string;
}
