import { statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { codeOf } from "../errors.ts";
import { readRegularSync } from "../regular-file.ts";
import {
  emptyPolicy,
  lineOf,
  mostPolicyBytes,
  parsePolicy,
  policyVersion,
  type Policy,
} from "./policy-file.ts";
import type { Operation } from "./policy-sense.ts";

/** The rules that count in this process at one moment; the two belong together. */
export interface PolicyInForce {
  readonly policy: Policy;
  /** Changes with the rules that decide: what is pending under another version is canceled. */
  readonly policyVersion: string;
}

/** A text of the file that counts, with what it says word for word. */
export interface PolicyText {
  readonly text: string;
  readonly policy: Policy;
  readonly policyVersion: string;
}

/** What rereading the file brought. Problems begin with their place, as `gatehouse.yml line 3: …`. */
export type PolicyNews =
  | { is: "changed"; before: PolicyText; after: PolicyText }
  | { is: "kept"; problems: readonly string[] };

interface PolicyPlace {
  /** Absolute. */
  path: string;
  /** As the variable names it: problems begin with it. */
  shown: string;
  /** The default file may be missing; one that is named may not. */
  mayBeMissing: boolean;
  operations: readonly Operation[];
}

/**
 * gatehouse.yml, which may be replaced while the process runs. It is read at the start and whenever `reread` is called; what
 * can't be used leaves the former rules. What was built from a setting at the start keeps it until the next one
 * (`untilNextStart`): half of a new timing would prove less than either.
 */
export class ChangingPolicy {
  /** Why the file as it was last read isn't the one that counts; empty where it is. */
  problems: readonly string[] = [];
  readonly #place: PolicyPlace;
  readonly #atStart: Policy;
  #read: PolicyText;
  #inForce: PolicyInForce;
  #isAbsent: boolean;
  #taken: string;
  #seen: string;

  private constructor(place: PolicyPlace, first: PolicyText, isAbsent: boolean) {
    this.#place = place;
    this.#read = first;
    this.#atStart = first.policy;
    this.#inForce = { policy: first.policy, policyVersion: first.policyVersion };
    this.#isAbsent = isAbsent;
    this.#taken = this.#seen = stampOf(place.path);
  }

  /** Its problems instead, where the file can't be used. */
  static open(place: PolicyPlace): ChangingPolicy | readonly string[] {
    const found = textOf(place);
    // A mistyped path must not silently become an empty policy
    if (found.is === "absent" && place.mayBeMissing)
      return new ChangingPolicy(place, asRead("", emptyPolicy()), true);
    if (found.is !== "text") return [found.problem];
    const parsed = parse(found.text, place);
    return "problems" in parsed ? parsed.problems : new ChangingPolicy(place, parsed, false);
  }

  get inForce(): PolicyInForce {
    return this.#inForce;
  }

  /** Where it should be, if it was never there: then nobody wrote the rules that count here. */
  get missingAt(): string | undefined {
    return this.#isAbsent ? this.#place.path : undefined;
  }

  /** As the file says it, with what waits for the next start. */
  get asWritten(): Policy {
    return this.#read.policy;
  }

  /** The text behind it; empty where there is no file. */
  get text(): string {
    return this.#read.text;
  }

  /** `gatehouse.yml line 3: `, where the file has a value there. */
  placeOf(path: readonly PropertyKey[]): string {
    const line = lineOf(this.text, path);
    return line === undefined ? "" : `${this.#place.shown} line ${line}: `;
  }

  /** Reads another text as this file would be read: undefined where it has problems. */
  parse(text: string): PolicyText | undefined {
    const parsed = parse(text, this.#place);
    return "problems" in parsed ? undefined : parsed;
  }

  /** For a poll: whether the file was replaced since it was last read, and stands as it did at the poll before. */
  isReplaced(): boolean {
    const before = this.#seen;
    this.#seen = stampOf(this.#place.path);
    return this.#seen !== this.#taken && this.#seen === before;
  }

  /**
   * Reads it now. Undefined where there is nothing new to say: the same text, or the same problems. With `onlyVersion` other
   * rules are left for a later call.
   */
  reread({ onlyVersion }: { onlyVersion?: string } = {}): PolicyNews | undefined {
    const stamp = stampOf(this.#place.path);
    const found = textOf(this.#place);
    if (onlyVersion === undefined) this.#taken = this.#seen = stamp;
    if (found.is === "text" ? found.text === this.text : found.is === "absent" && this.#isAbsent) {
      this.problems = [];
      return undefined;
    }
    const parsed =
      found.is === "text" ? parse(found.text, this.#place) : { problems: [found.problem] };
    if ("problems" in parsed) return onlyVersion === undefined ? this.#keep(parsed) : undefined;
    if (onlyVersion !== undefined && parsed.policyVersion !== onlyVersion) return undefined;
    const before = this.#read;
    this.problems = [];
    this.#isAbsent = false;
    this.#taken = this.#seen = stamp;
    this.#read = parsed;
    const policy = untilNextStart(parsed.policy, this.#atStart);
    this.#inForce = { policy, policyVersion: parsed.policyVersion };
    return { is: "changed", before, after: parsed };
  }

  #keep({ problems }: { problems: readonly string[] }): PolicyNews | undefined {
    const isTold = this.problems.join("\n") === problems.join("\n");
    this.problems = problems;
    return isTold ? undefined : { is: "kept", problems };
  }
}

/** Places whose new value counts from the next start on: calls, clocks, and folders were set up with the old one. */
export const nextStartOnly: readonly string[] = [
  "timing",
  "attestation.endorsements",
  "attestation.refresh",
];
/** Within them, what counts at once. */
export const atOnce: readonly string[] = ["timing.approvalExpiresMs"];

function untilNextStart(policy: Policy, atStart: Policy): Policy {
  const { endorsements, refresh } = atStart.attestation;
  const { approvalExpiresMs } = policy.timing;
  return {
    ...policy,
    timing: { ...atStart.timing, approvalExpiresMs },
    attestation: { ...policy.attestation, endorsements, refresh },
  };
}

type Parsed = PolicyText | { problems: readonly string[] };

function parse(text: string, { shown, path, operations }: PolicyPlace): Parsed {
  const result = parsePolicy(text, shown, operations);
  return "problems" in result ? result : asRead(text, withFolder(result.policy, dirname(path)));
}

const asRead = (text: string, policy: Policy): PolicyText => ({
  text,
  policy,
  policyVersion: policyVersion(policy),
});

type Found = { is: "text"; text: string } | { is: "absent" | "unreadable"; problem: string };

function textOf({ path, shown }: PolicyPlace): Found {
  try {
    return { is: "text", text: readRegularSync(path, mostPolicyBytes).toString("utf8") };
  } catch (error) {
    const code = codeOf(error);
    const problem = `${shown} can't be read (${code})`;
    return { is: code === "ENOENT" ? "absent" : "unreadable", problem };
  }
}

/** Follows links, so that a swapped one, as a mounted ConfigMap's, is seen. */
function stampOf(path: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(path);
    return `${ino} ${size} ${mtimeMs}`;
  } catch (error) {
    return codeOf(error);
  }
}

/** The folder of endorsements stands beside the file, where it is no absolute path. */
function withFolder(policy: Policy, beside: string): Policy {
  const { endorsements, ...rest } = policy.attestation;
  if (endorsements === undefined) return policy;
  return { ...policy, attestation: { ...rest, endorsements: resolve(beside, endorsements) } };
}
