import { matchesGlob } from "../inventory/glob.ts";
import type { Pin } from "../policy-file.ts";

/**
 * The measurements that policy allows for a target, by any of its names (name, id, `project/name`); empty when no pin
 * speaks of it. Several pins that match add up.
 */
export function pinsFor(pins: readonly Pin[], names: readonly string[]): readonly string[] {
  const matching = pins.filter(({ targets }) =>
    targets.some((glob) => names.some((name) => matchesGlob(glob, name))),
  );
  return [...new Set(matching.flatMap(({ measurements }) => measurements))];
}
