import { evidenceOf, type Platform } from "../evidence/vendors.ts";
import { evidenceWeather } from "./evidence-weather.ts";
import { measurementOf, type SandboxVm, Refusal } from "./records.ts";
import { fractionOf } from "../random.ts";

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

const units: Record<string, number> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
const samples = 60;

/** 60 samples over the period ("15m", "1h", "7d"; anything else means an hour), the same for the same VM and minute. */
export function metricsOf(vm: SandboxVm, period: string, now: number = Date.now()): object {
  const [, count = "1", unit = "h"] = /^(\d{1,4})([smhdw])$/.exec(period) ?? [];
  const step = Math.max(1000, (Number(count) * (units[unit] ?? 3_600_000)) / samples);
  const end = Math.floor(now / step);
  const { busySince = Infinity } = vm;
  const series = (kind: string, usual: number, usualSwing: number) =>
    vm.status === "STOPPED"
      ? []
      : Array.from({ length: samples }, (_, index) => {
          const slot = end - samples + 1 + index;
          const isBusy = kind === "cpu" && slot * step >= busySince;
          const [base, swing] = isBusy ? [98, 1.5] : [usual, usualSwing];
          const wave = Math.sin((slot * step) / 4_200_000 + fractionOf(vm.id + kind) * 6.28);
          const noise = fractionOf(`${vm.id} ${kind} ${slot}`) - 0.5;
          const value = base + swing * wave + swing * 0.7 * noise;
          return {
            timestamp: new Date(slot * step).toISOString(),
            value: Math.round(Math.min(100, Math.max(0, value)) * 10) / 10,
          };
        });
  const load = 15 + fractionOf(vm.id) * 50;
  return {
    cpu_usage: series("cpu", load, 12),
    memory_usage: series("memory", 30 + fractionOf(`${vm.id}m`) * 40, 6),
    disk_usage: Math.round((20 + fractionOf(`${vm.id}d`) * 60) * 10) / 10,
  };
}
