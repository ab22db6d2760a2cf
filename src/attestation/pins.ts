import type { AppraisalRule } from "../config/policy-schema.ts";
import type { Pin } from "../config/policy-file.ts";
import { matchesGlob } from "../text/glob.ts";
import { type AppraisalPolicy, strictPolicy } from "../verifier/appraisal-policy.ts";
import { difference, short } from "./measurements.ts";

/** A VM by everything that a rule may know it by. */
export interface NamedVm {
  id: string;
  name: string;
  projectId: string;
  projectName?: string | undefined;
}

/** What may be measured of a VM, and who says so. The file wins: an approval counts only where it says nothing. */
export interface VmPins {
  from: "gatehouse.yml" | "an approval" | "nowhere";
  /** Those that count. */
  values: readonly string[];
  /** Why an approved one doesn't count: its record isn't sealed yet, or it was written by hand. */
  doubt?: "waits" | "forged";
}

/** The names by which a pin or a rule can match a VM: name, id, `project/name`. */
export function namesOf(vm: NamedVm): string[] {
  return [vm.name, vm.id, `${vm.projectName ?? vm.projectId}/${vm.name}`];
}

/**
 * The measurements that policy allows for a target, by any of its names; empty when no pin speaks of it. Several pins that
 * match add up.
 */
export function pinsFor(pins: readonly Pin[], names: readonly string[]): readonly string[] {
  const matching = pins.filter(({ targets }) => isNamed(targets, names));
  return [...new Set(matching.flatMap(({ measurements }) => measurements))];
}

/** What is accepted of a VM: the first rule that speaks of it, else nothing that isn't current. */
export function acceptedFor(
  rules: readonly AppraisalRule[],
  names: readonly string[],
): AppraisalPolicy {
  const rule = rules.find(({ targets }) => targets === undefined || isNamed(targets, names));
  return rule?.policy ?? strictPolicy;
}

const isNamed = (globs: readonly string[], names: readonly string[]) =>
  globs.some((glob) => names.some((name) => matchesGlob(glob, name)));

/** What each value of a pin stands for. */
function partsOf(pin: string): readonly (readonly [label: string, value: string])[] {
  const values = pin.split(",");
  if (values.length < 4) return [["Firmware and CPUs at the start", values[0] ?? ""]];
  const labels = [
    "MRTD, the firmware",
    "RTMR0, its configuration and memory",
    "RTMR1, boot loader and kernel",
    "RTMR2, the system",
  ];
  return labels.map((label, at) => [label, values[at] ?? ""]);
}

/** How a pin differs from the one before, value by value, for people who decide about it. */
export function pinChange(
  pin: string,
  before: string | undefined,
): readonly (readonly [label: string, text: string])[] {
  const old = before === undefined ? [] : partsOf(before).map(([, value]) => value);
  return partsOf(pin).map(([label, value], at) => {
    const was = old[at];
    if (was === undefined) return [label, `${short(value)}, not pinned until now`];
    return [label, was === value ? `${short(value)}, unchanged` : (difference(value, was) ?? "")];
  });
}
