import type { Product } from "./roots.ts";
import type { TcbParts } from "./snp/report.ts";
import type { TcbStatus } from "./tdx/tcb.ts";
import type { EvidenceFacts } from "./verification.ts";

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
 * What evidence measures, written as a pin: MEASUREMENT, or MRTD,RTMR0,RTMR1,RTMR2, lower-case hex. MRTD alone can be pinned,
 * too; for TDX the firmware says nothing of the kernel, so that all four should stand in one pin.
 */
export function pinOf(facts: EvidenceFacts): string {
  return facts.tee === "snp"
    ? facts.measurement
    : [facts.mrTd, ...facts.rtmr.slice(0, 3)].join(",");
}

/** Whether the evidence measures what is expected; "in part" when only the firmware of a TDX VM is pinned. */
export function matches(pin: string, facts: EvidenceFacts): "whole" | "in part" | undefined {
  if (pin === pinOf(facts)) return "whole";
  return facts.tee === "tdx" && pin === facts.mrTd ? "in part" : undefined;
}
