import { dirname, resolve } from "node:path";
import { codeOf } from "../errors.ts";
import { readRegularSync } from "../regular-file.ts";
import { canonical } from "../text/canonical-json.ts";
import {
  emptyPolicy,
  mostPolicyBytes,
  parsePolicy,
  policyVersion,
  type Policy,
  type ReadPolicy,
} from "./policy-file.ts";
import { durationWords } from "./durations.ts";
import type { Pace } from "./policy-schema.ts";
import type { PolicyTerms } from "./policy-section.ts";

/**
 * The policy in force in this process at one moment, with its version. The two must be read
 * together.
 */
export interface PolicyInForce {
  readonly policy: Policy;
  /**
   * Changes whenever the rules that decide change; what is pending under another version is
   * canceled. It is the name under which these rules were adopted, perhaps by another release that
   * computes names differently (`goBy`).
   */
  readonly policyVersion: string;
}

/** A usable text of the policy file, parsed and verbatim. */
export interface PolicyText extends PolicyInForce, Pick<ReadPolicy, "lineOf"> {
  readonly text: string;
}

/**
 * The result of rereading the file. Problems begin with their place, as in `gatehouse.yml line 3:
 * …`.
 */
export type PolicyNews =
  | { kind: "read"; text: PolicyText }
  | { kind: "kept"; problems: readonly string[] };

interface PolicyPlace {
  /** Absolute path. */
  path: string;
  /** The path as the variable gives it. Problems begin with it. */
  shown: string;
  /**
   * Whether the file may be absent. The default file may be; a file that a variable names may not.
   */
  mayBeMissing: boolean;
  terms: PolicyTerms;
  pace?: Pace | undefined;
}

/**
 * gatehouse.yml, which may be replaced while the process runs. It is read at the start and whenever
 * `reread` is called. A text that was read counts from `putInForce` on; an unusable text leaves the
 * former rules in force. Settings that components took over at the start keep their old value until
 * the next start (`untilNextStart`), because a timing that only half of the process follows would
 * prove less than the old or the new one.
 */
export class ChangingPolicy {
  /** Why the file as last read isn't the one in force. Empty when it is. */
  problems: readonly string[] = [];
  /** The path where the file was expected, if it never existed: nobody wrote the rules in force. */
  missingAt: string | undefined;
  inForce: PolicyInForce;
  readonly #place: PolicyPlace;
  readonly #atStart: Policy;
  #read: PolicyText;
  #seen: string;

  private constructor(place: PolicyPlace, first: PolicyText, missingAt?: string) {
    this.missingAt = missingAt;
    this.#place = place;
    this.#read = first;
    this.#atStart = first.policy;
    this.inForce = { policy: first.policy, policyVersion: first.policyVersion };
    this.#seen = first.text;
  }

  /** Returns the file's problems instead when it can't be used. */
  static open(place: PolicyPlace): ChangingPolicy | readonly string[] {
    const file = textOf(place);
    // Only the default file may be absent: a mistyped path must not silently become an empty
    // policy.
    if ("problem" in file && file.isAbsent && place.mayBeMissing)
      return new ChangingPolicy(place, noText(place), place.path);
    const parsed = parse(file, place);
    return "problems" in parsed ? parsed.problems : new ChangingPolicy(place, parsed);
  }

  /** Stands for a file that can't be used, where only the other settings matter. */
  static leftOut(place: PolicyPlace): ChangingPolicy {
    return new ChangingPolicy(place, noText(place));
  }

  /**
   * The policy as the file states it, including settings that take effect only at the next start.
   */
  get asWritten(): Policy {
    return this.#read.policy;
  }

  /** The text in force, verbatim and parsed. */
  get current(): PolicyText {
    return this.#read;
  }

  /** The path as `GATEHOUSE_CONFIG` gives it. */
  get shown(): string {
    return this.#place.shown;
  }

  /**
   * Renames the version in force to the name under which these rules were adopted, so that requests
   * made under that name go on.
   */
  goBy(name: string): void {
    const { policy, policyVersion: before } = this.inForce;
    if (before !== name) this.inForce = { policy, policyVersion: name };
  }

  /** The text in force. Empty when there is no file. */
  get text(): string {
    return this.#read.text;
  }

  /** Absolute path. */
  get path(): string {
    return this.#place.path;
  }

  /** `gatehouse.yml line 3: ` if the file has a value at that place, otherwise an empty text. */
  placeOf(path: readonly PropertyKey[]): string {
    const line = this.#read.lineOf(path);
    return line === undefined ? "" : `${this.#place.shown} line ${line}: `;
  }

  /** Parses another text as if it were this file. Undefined when it has problems. */
  parse(text: string): PolicyText | undefined {
    const parsed = parse({ text }, this.#place);
    return "problems" in parsed ? undefined : parsed;
  }

  /**
   * For a poll: whether the file differs from the text in force and hasn't changed since the
   * previous poll. A file that just changed may be half written.
   */
  isReplaced(): boolean {
    const before = this.#seen;
    const file = textOf(this.#place);
    this.#seen = "text" in file ? file.text : file.problem;
    return this.#seen === before && this.#seen !== this.text;
  }

  /**
   * Reads the file now. Undefined when there is nothing new: the text in force, or the same
   * problems as before. With `isWanted`, a text that isn't wanted is left for a later call.
   */
  reread(isWanted?: (text: PolicyText) => boolean): PolicyNews | undefined {
    const file = textOf(this.#place);
    const isSame =
      "text" in file ? file.text === this.text : file.isAbsent && this.missingAt !== undefined;
    if (isSame) {
      this.problems = [];
      return undefined;
    }
    const parsed = parse(file, this.#place);
    if (isWanted && ("problems" in parsed || !isWanted(parsed))) return undefined;
    return "problems" in parsed ? this.keep(parsed.problems) : { kind: "read", text: parsed };
  }

  /** Puts this text in force, under the name by which its rules were adopted. */
  take(text: PolicyText, name = text.policyVersion): void {
    this.problems = [];
    this.missingAt = undefined;
    this.#read = text;
    const policy = untilNextStart(text.policy, this.#atStart);
    this.inForce = { policy, policyVersion: name };
  }

  /**
   * Keeps the former rules for these reasons. Undefined when the same reasons were reported before.
   */
  keep(problems: readonly string[]): PolicyNews | undefined {
    if (this.problems.join("\n") === problems.join("\n")) return undefined;
    this.problems = problems;
    return { kind: "kept", problems };
  }
}

/**
 * The part of a policy that counts before the next start. Calls, timers, and folders were set up
 * with the old values and keep them.
 */
function untilNextStart(policy: Policy, atStart: Policy): Policy {
  const { endorsements, refresh } = atStart.attestation;
  const { approvalExpiresMs } = policy.timing;
  return {
    ...policy,
    timing: { ...atStart.timing, approvalExpiresMs },
    attestation: { ...policy.attestation, endorsements, refresh },
  };
}

type TextOrProblem = { text: string } | { problem: string; isAbsent: boolean };

function textOf({ path, shown }: PolicyPlace): TextOrProblem {
  try {
    return { text: readRegularSync(path, mostPolicyBytes).toString("utf8") };
  } catch (error) {
    const code = codeOf(error);
    return { problem: `${shown} can't be read (${code})`, isAbsent: code === "ENOENT" };
  }
}

function parse(
  file: TextOrProblem,
  { shown, path, terms, pace }: PolicyPlace,
): PolicyText | { problems: readonly string[] } {
  if ("problem" in file) return { problems: [file.problem] };
  const read = parsePolicy(file.text, shown, terms, pace);
  if ("problems" in read) return read;
  const { endorsements: folder, ...attestation } = read.policy.attestation;
  // A relative folder of endorsements is relative to the policy file.
  const endorsements = folder === undefined ? undefined : resolve(dirname(path), folder);
  const policy = { ...read.policy, attestation: { ...attestation, endorsements } };
  return { ...read, text: file.text, policy, policyVersion: policyVersion(read.policy) };
}

/** The policy text of a process without a policy file. */
function noText({ pace, terms }: PolicyPlace): PolicyText {
  const policy = emptyPolicy(pace, terms.sections);
  return { text: "", policy, policyVersion: policyVersion(policy), lineOf: () => undefined };
}

/** One difference between two policies, with values written as in the file. */
export interface PolicyChange {
  /** The place as problems name it, counted from 1: `access.operate`, `approvals[2].required`. */
  place: string;
  /**
   * For a list: the items that were removed or added. For a single value: the old and the new
   * value, where it was or is set.
   */
  removed: readonly string[];
  added: readonly string[];
  /** True when a single value was replaced: `removed` became `added`. */
  isReplaced: boolean;
  /** True when the change counts only from the next start on. */
  waits: boolean;
}

/** Every difference, in the order of the file's sections. No change that decides may go unseen. */
export function changesBetween(before: Policy, after: Policy): readonly PolicyChange[] {
  const atOnce = differences("", before, untilNextStart(after, before)).map(({ place }) => place);
  return differences("", before, after).map((change) => ({
    ...change,
    waits: !atOnce.includes(change.place),
  }));
}

/**
 * The change with its place, like `access.operate: added U0AMIR`, for the log and the audit trail.
 */
export const changeInWords = (change: PolicyChange): string =>
  `${change.place}: ${whatChanged(change, (values) => values.join(", "))}`;

/** The change without its place. `wordValues` puts its values into words. */
export function whatChanged(
  { added, removed, isReplaced, waits }: PolicyChange,
  wordValues: (values: readonly string[]) => string,
): string {
  const later = waits ? "; takes effect at the next start" : "";
  if (isReplaced) return `${wordValues(removed)} → ${wordValues(added)}${later}`;
  const parts = [
    added.length > 0 && `added ${wordValues(added)}`,
    removed.length > 0 && `removed ${wordValues(removed)}`,
  ].filter((part) => part !== false);
  return (parts.length === 0 ? "the order changed" : parts.join("; ")) + later;
}

/** Stands for a value that the file doesn't have. */
export const notSet = "not set";

type Difference = Omit<PolicyChange, "waits">;

function differences(path: string, before: unknown, after: unknown): readonly Difference[] {
  if (canonical(before ?? null) === canonical(after ?? null)) return [];
  if (isSection(before) && isSection(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return keys.flatMap((key) =>
      differences(path === "" ? key : `${path}.${key}`, before[key], after[key]),
    );
  }
  const place = path.replace(/Ms$/, "");
  if (!Array.isArray(before) || !Array.isArray(after)) {
    const [removed, added] = [[inWords(path, before)], [inWords(path, after)]];
    return [{ place, removed, added, isReplaced: true }];
  }
  if ([...before, ...after].some(isSection) && before.length === after.length)
    return before.flatMap((section, at) => differences(`${path}[${at + 1}]`, section, after[at]));
  const words = (item: unknown) => inWords(path, item);
  const [removed, added] = [lacking(before, after).map(words), lacking(after, before).map(words)];
  return [{ place, removed, added, isReplaced: false }];
}

type Section = Readonly<Record<string, unknown>>;

function isSection(value: unknown): value is Section {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The items of `some` that `others` doesn't have. */
function lacking(some: readonly unknown[], others: readonly unknown[]): readonly unknown[] {
  const known = new Set(others.map(canonical));
  return some.filter((entry) => !known.has(canonical(entry)));
}

function inWords(path: string, value: unknown): string {
  if (value === undefined || value === null) return notSet;
  if (typeof value === "number" && /(Ms|expires)$/.test(path)) return durationWords(value);
  if (Array.isArray(value))
    return value.length === 0 ? "none" : value.map((entry) => inWords(path, entry)).join(", ");
  if (!isSection(value)) return typeof value === "string" ? value : JSON.stringify(value);
  const set = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return `(${set.map(([key, inner]) => `${key.replace(/Ms$/, "")} ${inWords(key, inner)}`).join("; ")})`;
}
