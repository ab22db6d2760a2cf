import type { Specs } from "../compute/compute.ts";

/** Whether the specs that were to change are shown, and are as they were. What isn't shown proves nothing. */
export function keepsSpecs(
  now: Specs | undefined,
  before: Specs | undefined,
  wanted: { cpu?: number | undefined; memory?: number | undefined },
): boolean {
  return (["cpu", "memory"] as const).every(
    (key) => wanted[key] === undefined || (now?.[key] !== undefined && now[key] === before?.[key]),
  );
}
