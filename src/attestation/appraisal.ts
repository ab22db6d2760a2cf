import type { AttestationReport, Vm } from "../compute/compute.ts";
import type { AppraisalPolicy } from "../verifier/appraisal-policy.ts";
import type { AttestationResult, Context } from "../verifier/attestation-result.ts";
import type { Verification } from "../verifier/verification.ts";
import type { VmPins } from "./pins.ts";

/** Three results, never two: that something could not be checked is neither good nor bad news. */
export type Verdict = AttestationResult["verdict"];

export interface AppraisalInput {
  vm: Pick<Vm, "createdAt" | "attestation"> & Partial<Pick<Vm, "status">>;
  report: AttestationReport | { error: unknown };
  /** Of the raw report, by the vendors' roots; undefined where the report could not be read. */
  verification: Verification | undefined;
  /** The same by what Intel will ask for next, where that is known. */
  early?: Verification | undefined;
  /** What may be measured of this very VM; empty when nothing is said of it. */
  pins: readonly string[];
  /** People are said to have approved a pin that doesn't count, and why it doesn't. */
  pinDoubt?: VmPins["doubt"];
  policy: AppraisalPolicy;
  /** Whether gatehouse.yml names a folder of endorsements; without one Gatehouse can check no signature. */
  hasEndorsements: boolean;
  /** Files that are needed and not in that folder. */
  absent?: readonly string[];
  /** What the register of evidence knows. */
  seen?: Context["seen"];
  /** When genuine evidence of this VM was seen last, before now (Redis's time, ms). */
  attestedAt?: number | undefined;
  /** Milliseconds since the epoch. */
  now: number;
  /** Reports from before this moment are not enough: when the VM was changed, in milliseconds since the epoch. */
  notBefore?: number | undefined;
}

export interface Appraisal {
  verdict: Verdict;
  /** Why, as sentences without full stop: what contradicts, what is missing, or what supports it. Never empty. */
  reasons: readonly string[];
  /** What a reader should know beside the verdict. */
  notes: readonly string[];
  /** What to do where it could not be verified. */
  wayOut?: string | undefined;
  /** Nothing contradicts, and what is missing is that gatehouse.yml names no endorsements, or no pin for this VM. */
  isUnconfigured: boolean;
  /** gatehouse.yml, a pin, or evidence that was seen before asks for more than that nothing contradicts. */
  isAsked: boolean;
  /** The service says that attestation is off, and no pin and no evidence of before says otherwise. */
  isOff: boolean;
  /** The VM runs, and the service answered without a report: no mere outage. */
  isWithheld: boolean;
  /** What a vendor had signed was changed or forged. */
  isAlarm: boolean;
  measurement: {
    report?: string | undefined;
    vm?: string | undefined;
    /** Those that count. */
    pins: readonly string[];
    pinDoubt?: VmPins["doubt"];
    /** Undefined where one of the two isn't known. */
    matchesVm?: boolean | undefined;
    /** Undefined without pins, or without anything to hold against them. */
    matchesPin?: boolean | undefined;
    /** What the evidence measures, as a pin would name it. */
    evidence?: string | undefined;
  };
  /** How the measurement differs from the one expected, in words. */
  difference?: string | undefined;
  /** `AMD SEV-SNP report, version 5, Genoa`. */
  evidence?: string | undefined;
  /** Until when this result holds, unless a vendor says otherwise before (ms). */
  validUntil?: number | undefined;
  /** What ends then: `AMD's revocation list of Genoa`. */
  endsWith?: string | undefined;
  /** What the compute service says, which never counts for it. */
  service: {
    verified?: boolean | undefined;
    platform?: string | undefined;
    /** When it says the report was made, and how long ago that was (ms). */
    madeAt?: number | undefined;
    ageMs?: number | undefined;
  };
  /** Why it will fail once Intel's next level counts, as sentences without full stop. */
  soon?: string | undefined;
  /** The whole result by RFC 9334; undefined where the report could not be read. */
  result?: AttestationResult | undefined;
}
