import type { Specs } from "../fleet/compute/compute.ts";

/** `4 · 8 · 40`, with question marks for values that aren't reported. */
export function specsWords(specs: Specs | undefined): string {
  return [specs?.cpu, specs?.memory, specs?.disk].map((n) => n ?? "?").join(" · ");
}
