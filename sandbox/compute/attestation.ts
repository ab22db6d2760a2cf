import { fingerprintOf, fractionOf } from "../random.ts";
import { measurementOf, type SandboxVm } from "./records.ts";
import { Refusal } from "./refusal.ts";

const platforms = [
  { vendor: "AMD", model: "EPYC 9654 (SEV-SNP)", firmware_version: "1.55.37" },
  { vendor: "Intel", model: "Xeon Platinum 8592+ (TDX)", firmware_version: "1.5.06.00" },
];

/** Evidence is made at boot, so its time is the boot's. */
export function attestationOf(vm: SandboxVm): object | Refusal {
  if (!vm.attested)
    return new Refusal(409, "attestation_disabled", `${vm.name} has no attestation`);
  if (vm.status !== "RUNNING")
    return new Refusal(409, "conflict", `${vm.name} is ${vm.status}, a report needs RUNNING`);
  const measurement = vm.reportMeasurement ?? measurementOf(vm);
  return {
    report: reportBlob(vm, measurement),
    measurement,
    verified: vm.verified,
    timestamp: new Date(vm.bootedAt).toISOString(),
    platform: platforms[fractionOf(vm.id) < 0.5 ? 0 : 1],
  };
}

/** A report as large as a SEV-SNP one, with the measurement where that has it (offset 0x90), not signed by anybody. */
function reportBlob(vm: SandboxVm, measurement: string): string {
  const blob = Buffer.alloc(1184);
  for (let at = 0; at < blob.length; at += 48)
    Buffer.from(fingerprintOf(`${vm.id} ${vm.bootedAt} ${at}`), "hex").copy(blob, at);
  Buffer.from(measurement, "hex").copy(blob, 0x90, 0, 48);
  return blob.toString("base64");
}
