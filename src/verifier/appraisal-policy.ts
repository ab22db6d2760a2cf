import type { Product } from "./roots.ts";
import { type SnpFacts, type TcbParts } from "./snp/report.ts";
import type { TdxFacts } from "./tdx/quote.ts";
import type { TcbStatus } from "./tdx/tcb.ts";

/** What somebody may accept by name although it is refused otherwise. */
export const allowances = [
  "debug",
  "migration-agent",
  "migratable",
  "service-td",
  "chip-masked",
  "known-broken-product",
] as const;
export type Allowance = (typeof allowances)[number];

/** A level that Intel doesn't call current, accepted for a time. */
export interface AcceptedStatus {
  status: TcbStatus;
  /** Accepted with these at most; one that came since then is refused. */
  advisories: readonly string[];
  /** Milliseconds since the epoch. */
  until: number;
}

/** The least firmware that is accepted. AMD signs no such statement, and microcode counts per model. */
export interface MinimumTcb {
  product: Product;
  /** CPUID models; undefined: all of the product. */
  models?: readonly number[];
  tcb: TcbParts;
}

export interface AppraisalPolicy {
  statuses: readonly AcceptedStatus[];
  minimumTcb: readonly MinimumTcb[];
  /** Who in the VM may have asked for the report: 0 is the most privileged. */
  vmpl: number;
  allows: readonly Allowance[];
  /** Whether a report that is bound to nothing is not enough. */
  needsBinding: boolean;
  /** How old the vendors' lists and statements may be, beside their own end. */
  maxEndorsementAgeMs?: number;
}

/** Nothing is accepted that isn't named. */
export const strictPolicy: AppraisalPolicy = {
  statuses: [],
  minimumTcb: [],
  vmpl: 0,
  allows: [],
  needsBinding: false,
};

/**
 * A measurement that is expected, lower-case hex. One alone is the MEASUREMENT of SNP or the MRTD of TDX; for TDX firmware
 * alone says nothing of the kernel, so that all four registers should stand in one value.
 */
export type ReferenceValue =
  | { measurement: string }
  | { mrTd: string; rtmr: readonly [string, string, string] };

/** Whether the evidence measures what is expected; "in part" when only the firmware of a TDX VM is pinned. */
export function matches(
  reference: ReferenceValue,
  facts: TdxFacts | SnpFacts,
): "whole" | "in part" | undefined {
  if ("measurement" in reference) {
    const its = facts.tee === "snp" ? facts.measurement : facts.mrTd;
    if (its !== reference.measurement) return undefined;
    return facts.tee === "snp" ? "whole" : "in part";
  }
  if (facts.tee !== "tdx" || facts.mrTd !== reference.mrTd) return undefined;
  return reference.rtmr.every((value, at) => facts.rtmr[at] === value) ? "whole" : undefined;
}
