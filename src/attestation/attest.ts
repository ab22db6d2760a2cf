import type { AttestationReport, Compute, Vm } from "../compute/compute.ts";
import { type Appraisal, appraise } from "./appraise.ts";

export interface Attested {
  vm: Vm;
  appraisal: Appraisal;
  /** As the service gave it, when it did. */
  report?: AttestationReport;
}

/**
 * Reads a VM and its report and compares them. Rejects only when the VM itself can't be read; without a report the
 * result is `could not verify`. `pins` are those for this VM.
 */
export async function attest(
  vmId: string,
  options: {
    compute: Pick<Compute, "vms">;
    pins: readonly string[];
    now(): number;
    staleAfterMs?: number | undefined;
    notBefore?: number | undefined;
    signal?: AbortSignal | undefined;
  },
): Promise<Attested> {
  const { compute, pins, staleAfterMs, notBefore, signal } = options;
  const [vm, report] = await Promise.all([
    compute.vms.get(vmId, { signal }),
    compute.vms.attestation(vmId, { signal }).catch((error: unknown) => ({ error })),
  ]);
  const appraisal = appraise({ vm, report, pins, now: options.now(), staleAfterMs, notBefore });
  return { vm, appraisal, ...("error" in report ? {} : { report }) };
}
