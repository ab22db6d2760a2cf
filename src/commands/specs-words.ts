import type { Specs } from "../fleet/compute/compute.ts";

/** `4 · 8 · 40`, with question marks for values that aren't reported. */
export function specsWords(specs: Specs | undefined): string {
  return [specs?.cpu, specs?.memory, specs?.disk].map((n) => n ?? "?").join(" · ");
}

/** `4 CPU · 8 memory · 40 disk`: the compute service names no units. */
export function sizeWords(specs: Specs | undefined): string {
  const { cpu = "?", memory = "?", disk = "?" } = specs ?? {};
  return `${cpu} CPU · ${memory} memory · ${disk} disk`;
}
