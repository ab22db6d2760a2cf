import type { AttestationReport, Vm } from "../compute/compute.ts";
import { plain } from "../messages/text.ts";
import type { Appraisal } from "./appraise.ts";

/** The raw report as a file, for somebody with a verifier: what the service gave, and what was made of it. */
export function reportFile(
  vm: Pick<Vm, "id" | "name" | "attestation">,
  report: AttestationReport,
  appraisal: Appraisal,
  now: number,
): { name: string; content: string } {
  const day = new Date(now).toISOString().replaceAll(/[:]|\.\d+/g, "");
  const bare = plain(vm.name, 60).replaceAll(/[^\p{L}\p{N}._-]+/gu, "-");
  const { verdict, reasons, notes, measurement, difference } = appraisal;
  const content = {
    vm: { id: vm.id, name: vm.name, attestation: vm.attestation },
    readAt: new Date(now).toISOString(),
    report,
    appraisal: { verdict, reasons, notes, measurement, difference },
  };
  return {
    name: `attestation-${bare || "vm"}-${day}.json`,
    content: `${JSON.stringify(content, undefined, 2)}\n`,
  };
}
