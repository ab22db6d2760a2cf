import type { Specs } from "../fleet/compute/compute.ts";

/** `4 CPU · 8 memory · 40 disk`: the compute service names no units. */
export function sizeWords(specs: Specs | undefined): string {
  const { cpu = "?", memory = "?", disk = "?" } = specs ?? {};
  return `${cpu} CPU · ${memory} memory · ${disk} disk`;
}
