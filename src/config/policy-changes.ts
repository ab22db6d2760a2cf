import { canonical } from "../text/canonical-json.ts";
import { atOnce, nextStartOnly } from "./changing-policy.ts";
import type { Policy } from "./policy-file.ts";

/** One difference between two policies, with values in the words of the file. */
export interface PolicyChange {
  /** As problems name it, counted from 1: `access.operate`, `approvals[2].required`. */
  place: string;
  /** Of a list: its items. Of a single value: what it was and is, where it was or is set. */
  removed: readonly string[];
  added: readonly string[];
  /** A single value was replaced: `removed` became `added`. */
  isReplaced: boolean;
  /** It counts only from the next start on. */
  waits: boolean;
}

/** Every difference, in the order of the file's sections: nothing that decides may change unseen. */
export function changesBetween(before: Policy, after: Policy): readonly PolicyChange[] {
  return differences("", before, after).map((change) => ({
    ...change,
    waits: waits(change.place),
  }));
}

/** `access.operate: added U0AMIR`, for the log and the audit trail. */
export function changeInWords(change: PolicyChange): string {
  const { place, added, removed, isReplaced } = change;
  const later = change.waits ? "; takes effect at the next start" : "";
  if (isReplaced) return `${place}: ${removed.join(", ")} → ${added.join(", ")}${later}`;
  const parts = [
    added.length > 0 && `added ${added.join(", ")}`,
    removed.length > 0 && `removed ${removed.join(", ")}`,
  ].filter((part) => part !== false);
  return `${place}: ${parts.length === 0 ? "the order changed" : parts.join("; ")}${later}`;
}

/** In place of a value that the file doesn't have. */
export const notSet = "not set";

type Difference = Omit<PolicyChange, "waits">;

function differences(place: string, before: unknown, after: unknown): readonly Difference[] {
  if (canonical(before ?? null) === canonical(after ?? null)) return [];
  const name = place.replace(/Ms$/, "");
  if (Array.isArray(before) && Array.isArray(after)) {
    const isOfSections = [...before, ...after].some(isSection);
    if (isOfSections && before.length === after.length)
      return before.flatMap((one, at) => differences(`${place}[${at + 1}]`, one, after[at]));
    const words = (item: unknown) => inWords(place, item);
    const added = lacking(after, before).map(words);
    return [{ place: name, added, removed: lacking(before, after).map(words), isReplaced: false }];
  }
  if (isSection(before) && isSection(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return keys.flatMap((key) =>
      differences(place === "" ? key : `${place}.${key}`, before[key], after[key]),
    );
  }
  const [removed, added] = [before, after].map((value) => [inWords(place, value)]);
  return [{ place: name, added: added ?? [], removed: removed ?? [], isReplaced: true }];
}

type Section = Readonly<Record<string, unknown>>;

function isSection(value: unknown): value is Section {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Those of `some` that `others` doesn't have. */
function lacking(some: readonly unknown[], others: readonly unknown[]): readonly unknown[] {
  const known = new Set(others.map(canonical));
  return some.filter((one) => !known.has(canonical(one)));
}

function inWords(place: string, value: unknown): string {
  if (value === undefined || value === null) return notSet;
  if (typeof value === "number" && place.endsWith("Ms")) return asDuration(value);
  if (Array.isArray(value))
    return value.length === 0 ? "none" : value.map((one) => inWords(place, one)).join(", ");
  if (!isSection(value)) return typeof value === "string" ? value : JSON.stringify(value);
  const set = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return `(${set.map(([key, inner]) => `${key.replace(/Ms$/, "")} ${inWords(key, inner)}`).join("; ")})`;
}

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** As the file has it: 900,000 is 15m. */
function asDuration(ms: number): string {
  const [unit, length] = units.find(([, each]) => ms >= each && ms % each === 0) ?? ["ms", 1];
  return `${ms / length}${unit}`;
}

function waits(place: string): boolean {
  const isIn = (section: string) => {
    const name = section.replace(/Ms$/, "");
    return place === name || place.startsWith(`${name}.`);
  };
  return nextStartOnly.some(isIn) && !atOnce.some(isIn);
}
