import { evidenceOf, type Platform } from "../evidence/vendors.ts";
import { evidenceWeather } from "./evidence-weather.ts";
import { measurementOf, type SandboxVm } from "./records.ts";
import { Refusal } from "./refusal.ts";

const names: Record<Platform, object> = {
  Milan: { vendor: "AMD", model: "EPYC 7763 (SEV-SNP)", firmware_version: "1.55.24" },
  Genoa: { vendor: "AMD", model: "EPYC 9654 (SEV-SNP)", firmware_version: "1.55.37" },
  Turin: { vendor: "AMD", model: "EPYC 9755 (SEV-SNP)", firmware_version: "1.55.58" },
  TDX: { vendor: "Intel", model: "Xeon Platinum 8592+ (TDX)", firmware_version: "1.5.06.00" },
};

/** Evidence is made at boot, so its time is the boot's. */
export function attestationOf(vm: SandboxVm): object | Refusal {
  if (!vm.attested)
    return new Refusal(409, "attestation_disabled", `${vm.name} has no attestation`);
  if (vm.status !== "RUNNING")
    return new Refusal(409, "conflict", `${vm.name} is ${vm.status}, a report needs RUNNING`);
  return {
    report: vm.replayed ?? reportOf(vm),
    measurement: measuredOf(vm),
    verified: vm.verified,
    timestamp: new Date(vm.bootedAt).toISOString(),
    platform: names[vm.platform ?? "Genoa"],
    ...weatherOf(vm)?.service,
  };
}

const measuredOf = (vm: SandboxVm) => vm.reportMeasurement ?? measurementOf(vm);

const weatherOf = ({ weather }: SandboxVm) =>
  weather === undefined ? undefined : evidenceWeather(weather);

/** Base64, as its processor signs it, and as the weather lets it through. */
export function reportOf(vm: SandboxVm): string {
  const weather = weatherOf(vm);
  const machine = {
    platform: vm.platform ?? "Genoa",
    measurement: measuredOf(vm).padEnd(96, "0").slice(0, 96),
    hardware: `${vm.specs.cpu} CPUs, ${vm.specs.memory} of memory`,
    boot: `${vm.id} ${vm.bootedAt} ${vm.bootCount}`,
    isDebug: vm.debug ?? false,
  };
  const evidence = evidenceOf(machine, weather);
  const base64 = (weather?.bytes?.(evidence) ?? evidence).toString("base64");
  return weather?.text?.(base64) ?? base64;
}
