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

/** The rules that count in this process at one moment; the two belong together. */
export interface PolicyInForce {
  readonly policy: Policy;
  /**
   * Changes with the rules that decide: what is pending under another version is canceled. It is the name under which these rules
   * were adopted, which a release before may have made in another way (`goBy`).
   */
  readonly policyVersion: string;
}

/** A text of the file that can be used, with what it says word for word. */
export interface PolicyText extends PolicyInForce, Pick<ReadPolicy, "lineOf"> {
  readonly text: string;
}

/** What rereading the file brought. Problems begin with their place, as `gatehouse.yml line 3: …`. */
export type PolicyNews =
  | { is: "read"; text: PolicyText }
  | { is: "kept"; problems: readonly string[] };

interface PolicyPlace {
  /** Absolute. */
  path: string;
  /** As the variable names it: problems begin with it. */
  shown: string;
  /** The default file may be missing; one that is named may not. */
  mayBeMissing: boolean;
  terms: PolicyTerms;
  pace?: Pace | undefined;
}

/**
 * gatehouse.yml, which may be replaced while the process runs. It is read at the start and whenever `reread` is called; what was
 * read counts from `take` on, and what can't be used leaves the former rules. What was built from a setting at the start keeps it until the next one
 * (`untilNextStart`): half of a new timing would prove less than either.
 */
export class ChangingPolicy {
  /** Why the file as it was last read isn't the one that counts; empty where it is. */
  problems: readonly string[] = [];
  /** Where it should be, if it was never there: then nobody wrote the rules that count here. */
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

  /** Its problems instead, where the file can't be used. */
  static open(place: PolicyPlace): ChangingPolicy | readonly string[] {
    const found = textOf(place);
    // A mistyped path must not silently become an empty policy
    if ("problem" in found && found.isAbsent && place.mayBeMissing)
      return new ChangingPolicy(place, noText(place), place.path);
    const parsed = parse(found, place);
    return "problems" in parsed ? parsed.problems : new ChangingPolicy(place, parsed);
  }

  /** As the file says it, with what waits for the next start. */
  get asWritten(): Policy {
    return this.#read.policy;
  }

  /** What counts, word for word. */
  get current(): PolicyText {
    return this.#read;
  }

  /** As `GATEHOUSE_CONFIG` names it. */
  get shown(): string {
    return this.#place.shown;
  }

  /** The rules that count were adopted under this name: what was requested under it goes on. */
  goBy(name: string): void {
    const { policy, policyVersion: before } = this.inForce;
    if (before !== name) this.inForce = { policy, policyVersion: name };
  }

  /** The text behind it; empty where there is no file. */
  get text(): string {
    return this.#read.text;
  }

  /** Absolute. */
  get path(): string {
    return this.#place.path;
  }

  /** `gatehouse.yml line 3: `, where the file has a value there. */
  placeOf(path: readonly PropertyKey[]): string {
    const line = this.#read.lineOf(path);
    return line === undefined ? "" : `${this.#place.shown} line ${line}: `;
  }

  /** Reads another text as this file would be read: undefined where it has problems. */
  parse(text: string): PolicyText | undefined {
    const parsed = parse({ text }, this.#place);
    return "problems" in parsed ? undefined : parsed;
  }

  /** For a poll: whether the file isn't the one that counts, and is as it was at the poll before. It may be half written. */
  isReplaced(): boolean {
    const before = this.#seen;
    const found = textOf(this.#place);
    this.#seen = "text" in found ? found.text : found.problem;
    return this.#seen === before && this.#seen !== this.text;
  }

  /**
   * Reads it now. Undefined where there is nothing new to say: the same text, or the same problems. With `isWanted`, whatever else
   * stands there is left for a later call.
   */
  reread(isWanted?: (text: PolicyText) => boolean): PolicyNews | undefined {
    const found = textOf(this.#place);
    const isSame =
      "text" in found ? found.text === this.text : found.isAbsent && this.missingAt !== undefined;
    if (isSame) {
      this.problems = [];
      return undefined;
    }
    const parsed = parse(found, this.#place);
    if (isWanted && ("problems" in parsed || !isWanted(parsed))) return undefined;
    return "problems" in parsed ? this.keep(parsed.problems) : { is: "read", text: parsed };
  }

  /** What was read counts from now on, under the name that its rules were adopted by. */
  take(text: PolicyText, name = text.policyVersion): void {
    this.problems = [];
    this.missingAt = undefined;
    this.#read = text;
    const policy = untilNextStart(text.policy, this.#atStart);
    this.inForce = { policy, policyVersion: name };
  }

  /** The former rules stay, for these reasons. Undefined where they are known. */
  keep(problems: readonly string[]): PolicyNews | undefined {
    if (this.problems.join("\n") === problems.join("\n")) return undefined;
    this.problems = problems;
    return { is: "kept", problems };
  }
}

/** What counts until the next start: calls, clocks, and folders were set up with the old values, and keep them. */
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
  found: TextOrProblem,
  { shown, path, terms, pace }: PolicyPlace,
): PolicyText | { problems: readonly string[] } {
  if ("problem" in found) return { problems: [found.problem] };
  const read = parsePolicy(found.text, shown, terms, pace);
  if ("problems" in read) return read;
  const { endorsements: folder, ...attestation } = read.policy.attestation;
  // The folder of endorsements stands beside the file, where it is no absolute path
  const endorsements = folder === undefined ? undefined : resolve(dirname(path), folder);
  const policy = { ...read.policy, attestation: { ...attestation, endorsements } };
  return { ...read, text: found.text, policy, policyVersion: policyVersion(read.policy) };
}

/** Of a process without a file. */
function noText({ pace, terms }: PolicyPlace): PolicyText {
  const policy = emptyPolicy(pace, terms.sections);
  return { text: "", policy, policyVersion: policyVersion(policy), lineOf: () => undefined };
}

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
  const atOnce = differences("", before, untilNextStart(after, before)).map(({ place }) => place);
  return differences("", before, after).map((change) => ({
    ...change,
    waits: !atOnce.includes(change.place),
  }));
}

/** `access.operate: added U0AMIR`, for the log and the audit trail. */
export const changeInWords = (change: PolicyChange): string =>
  `${change.place}: ${whatChanged(change, (values) => values.join(", "))}`;

/** The same without its place. `said` words its values. */
export function whatChanged(
  { added, removed, isReplaced, waits }: PolicyChange,
  said: (values: readonly string[]) => string,
): string {
  const later = waits ? "; takes effect at the next start" : "";
  if (isReplaced) return `${said(removed)} → ${said(added)}${later}`;
  const parts = [
    added.length > 0 && `added ${said(added)}`,
    removed.length > 0 && `removed ${said(removed)}`,
  ].filter((part) => part !== false);
  return (parts.length === 0 ? "the order changed" : parts.join("; ")) + later;
}

/** In place of a value that the file doesn't have. */
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
    return before.flatMap((one, at) => differences(`${path}[${at + 1}]`, one, after[at]));
  const words = (item: unknown) => inWords(path, item);
  const [removed, added] = [lacking(before, after).map(words), lacking(after, before).map(words)];
  return [{ place, removed, added, isReplaced: false }];
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

function inWords(path: string, value: unknown): string {
  if (value === undefined || value === null) return notSet;
  if (typeof value === "number" && /(Ms|expires)$/.test(path)) return durationWords(value);
  if (Array.isArray(value))
    return value.length === 0 ? "none" : value.map((one) => inWords(path, one)).join(", ");
  if (!isSection(value)) return typeof value === "string" ? value : JSON.stringify(value);
  const set = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return `(${set.map(([key, inner]) => `${key.replace(/Ms$/, "")} ${inWords(key, inner)}`).join("; ")})`;
}
