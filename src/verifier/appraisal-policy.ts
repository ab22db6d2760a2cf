import type { Product } from "./roots.ts";
import type { TcbParts } from "./snp/report.ts";
import type { TcbStatus } from "./tdx/tcb.ts";
import type { EvidenceFacts } from "./verification.ts";

/** Conditions that are refused unless the policy allows them by name. */
export const allowances = [
  "debug",
  "migration-agent",
  "migratable",
  "service-td",
  "chip-masked",
  "known-broken-product",
] as const;
export type Allowance = (typeof allowances)[number];

/** A TCB status other than UpToDate that is accepted for a time. */
export interface AcceptedStatus {
  status: TcbStatus;
  /** Accepted with these advisories at most; any other advisory refuses the status. */
  advisories: readonly string[];
  /** Milliseconds since the epoch. */
  until: number;
}

/**
 * The minimum firmware of an AMD processor. AMD signs no statement about what is current, and the
 * microcode version depends on the model.
 */
export interface MinimumTcb {
  product: Product;
  /** CPUID models. Undefined: every model of the product. */
  models?: readonly number[];
  tcb: TcbParts;
}

export interface AppraisalPolicy {
  statuses: readonly AcceptedStatus[];
  minimumTcb: readonly MinimumTcb[];
  /**
   * The privilege level in the VM from which the report must have been requested. 0 is the most
   * privileged.
   */
  vmpl: number;
  allows: readonly Allowance[];
  /** Whether a report with empty report data is refused. */
  needsBinding: boolean;
  /**
   * The greatest age of the vendors' lists and statements (ms). Their own end dates apply as well.
   */
  maxEndorsementAgeMs?: number;
}

/** The policy that accepts nothing that would have to be named. */
export const strictPolicy: AppraisalPolicy = {
  statuses: [],
  minimumTcb: [],
  vmpl: 0,
  allows: [],
  needsBinding: false,
};

/**
 * The measurements of evidence, written as a pin: MEASUREMENT for SNP, or MRTD,RTMR0,RTMR1,RTMR2
 * for TDX, in lower-case hex. MRTD alone can be pinned, too. In TDX the firmware's measurement
 * doesn't cover the kernel, so all four should be pinned together.
 */
export function pinOf(facts: EvidenceFacts): string {
  return facts.tee === "snp"
    ? facts.measurement
    : [facts.mrTd, ...facts.rtmr.slice(0, 3)].join(",");
}

/**
 * Whether the evidence has the pinned measurements; "in part" when only the firmware of a TDX VM is
 * pinned.
 */
export function matches(pin: string, facts: EvidenceFacts): "whole" | "in part" | undefined {
  if (pin === pinOf(facts)) return "whole";
  return facts.tee === "tdx" && pin === facts.mrTd ? "in part" : undefined;
}
