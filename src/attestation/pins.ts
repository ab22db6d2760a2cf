import type { AppraisalRule } from "../config/policy-schema.ts";
import type { Pin } from "../config/policy-file.ts";
import { matchesGlob } from "../text/glob.ts";
import { type AppraisalPolicy, strictPolicy } from "../verifier/appraisal-policy.ts";
import { decodeEvidence } from "../verifier/verify-evidence.ts";

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

/** Hex digits of the 48 bytes that TDX and SNP measure. */
export const measuredDigits = 96;

/**
 * A measurement in the one form in which two of them can be compared: lower-case hex. `0x`, spaces, colons and case
 * don't count; base64 of a usual length (32, 48 or 64 bytes) becomes hex; anything else stays as it is.
 */
export function normalize(measurement: string): string {
  const bare = measurement.trim().replaceAll(/[\s:]/g, "");
  const hex = bare.replace(/^0x/i, "").toLowerCase();
  if (/^([0-9a-f]{2})+$/.test(hex)) return hex;
  const bytes = decodeEvidence(bare);
  return bytes && [32, 48, 64].includes(bytes.length) ? bytes.toString("hex") : measurement.trim();
}

/** `4f2a…91bc`: enough to tell two apart at a glance; the whole one is in the report's file. */
export function short(measurement: string): string {
  const points = Array.from(measurement);
  return points.length <= 12
    ? measurement
    : `${points.slice(0, 4).join("")}…${points.slice(-4).join("")}`;
}

/** How two measurements differ, in words: `1 of 48 bytes differs: byte 17 is 4f, expected 4e`. Undefined when they are equal. */
export function difference(found: string, expected: string): string | undefined {
  const [is, should] = [normalize(found), normalize(expected)];
  if (is === should) return undefined;
  if (!isHex(is) || !isHex(should)) return `${short(is)} instead of ${short(should)}`;
  const [a, b] = [Buffer.from(is, "hex"), Buffer.from(should, "hex")];
  if (a.length !== b.length)
    return `${short(is)} (${a.length} bytes) instead of ${short(should)} (${b.length} bytes)`;
  const places = [...a.keys()].filter((at) => a[at] !== b[at]);
  const [first = 0] = places;
  const counted = `${places.length} of ${a.length} bytes ${places.length === 1 ? "differs" : "differ"}`;
  // A hash that changed differs nearly everywhere: only few differences are worth their places
  if (places.length > 3)
    return `${short(is)} instead of ${short(should)}: ${counted}, from byte ${first + 1}`;
  const each = places.map((at) => `byte ${at + 1} is ${hex(a[at])}, expected ${hex(b[at])}`);
  return `${counted}: ${each.join("; ")}`;
}

/** Of several expected ones, the one it differs from the least. */
export function nearestOf(found: string, expected: readonly string[]): string | undefined {
  const distance = (one: string) => {
    const [a, b] = [normalize(found), normalize(one)];
    const same = Array.from(a).filter((letter, at) => b[at] === letter).length;
    return Math.max(a.length, b.length) - same;
  };
  return expected.toSorted((a, b) => distance(a) - distance(b))[0];
}

const isHex = (text: string) => /^([0-9a-f]{2})+$/.test(text);
const hex = (byte: number | undefined) => (byte ?? 0).toString(16).padStart(2, "0");
