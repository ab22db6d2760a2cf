import { fractionOf } from "../random.ts";
import type { SandboxVm } from "./records.ts";

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
  const series = (kind: string, base: number, swing: number) =>
    vm.status === "STOPPED"
      ? []
      : Array.from({ length: samples }, (_, index) => {
          const slot = end - samples + 1 + index;
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
