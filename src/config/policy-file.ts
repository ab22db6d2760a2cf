import { createHash } from "node:crypto";
import {
  type Document,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
  type YAMLError,
} from "yaml";
import type * as z from "zod";
import { canonical } from "../text/canonical-json.ts";
import { nearest } from "../text/nearest.ts";
import { printableLine } from "../text/terminal.ts";
import { type Pace, type PolicyRules, policySchema, usualPace } from "./policy-schema.ts";
import {
  type Operation,
  type PolicyTerms,
  type WithSections,
  withSections,
} from "./policy-section.ts";
import { nonsenseIn } from "./policy-sense.ts";
import { statedRules } from "./stated-rules.ts";

export type { Operation } from "./policy-section.ts";

type Frozen<T> = { readonly [Key in keyof T]: Frozen<T[Key]> };

/**
 * gatehouse.yml with every default filled in and every duration in milliseconds. Access lists
 * contain Slack user IDs (`U…`, `W…`), user group IDs (`S…`), or `*` for every full member of the
 * workspace.
 */
export type Policy = Frozen<
  PolicyRules & {
    /**
     * Every operation that rules can name. A rename is judged by all operations that it takes the
     * project's rules away from.
     */
    operations: Operation[];
    timing: Pace;
  }
> &
  WithSections;
export type Access = Policy["access"];
export type Team = Policy["teams"][string];
export type ServiceRule = Policy["services"][string];
export type Pin = Policy["attestation"]["pins"][number];

/** A policy, with the lines of the text that it was read from. */
export interface ReadPolicy {
  policy: Policy;
  /** The line of a value, counted from 1. Undefined when the file doesn't have that value. */
  lineOf(path: readonly PropertyKey[]): number | undefined;
}

const longestText = 1_000_000;
/** UTF-8 takes at most four bytes for a character. */
export const mostPolicyBytes = 4 * longestText;

/** The policy of a process without a file: everyone may view, and no one may change anything. */
export function emptyPolicy(pace = usualPace, sections: PolicyTerms["sections"] = []): Policy {
  const { timing, ...rest } = policySchema(sections).parse({});
  rememberStated(rest, {}, []);
  return withSections({ ...rest, timing: { ...pace, ...timing }, operations: [] }, sections);
}

/**
 * Parses gatehouse.yml. Problems begin with their place: `gatehouse.yml line 3: access.oprate isn't
 * known; did you mean operate?`. `terms` are passed in because commands and features are layers
 * above this one.
 */
export function parsePolicy(
  text: string,
  path: string,
  terms: PolicyTerms,
  pace = usualPace,
): ReadPolicy | { problems: readonly string[] } {
  if (text.length > longestText)
    return { problems: [`${path}: is larger than ${longestText} characters`] };
  const lines = new LineCounter();
  const lineAt = (offset = 0) => lines.linePos(offset).line;
  const refusal = (problems: readonly Problem[]) => ({
    problems: problems
      .toSorted((a, b) => (a.offset ?? 0) - (b.offset ?? 0))
      // A key may contain a line break, which must not start a line of its own in the output.
      .map(({ offset, sentence }) => printableLine(`${path} line ${lineAt(offset)}: ${sentence}`)),
  });
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
  });
  // YAML reports an unknown tag only as a warning, but its value wouldn't be read as the tag says.
  const misread = [...document.errors, ...document.warnings].map((error): Problem => ({
    offset: error.pos[0],
    sentence: yamlWords(error),
  }));
  visit(document, {
    Alias: (_, { source, range }) => {
      const sentence = `*${source} is an alias: put a glob in quotes, and write out what has a name`;
      misread.push({ offset: range?.[0], sentence });
    },
  });
  if (misread.length > 0) return refusal(misread);
  const unsaid = unsaidIn(document);
  const read = policySchema(terms.sections).safeParse(document.toJS(), { reportInput: true });
  const wrong = read.success
    ? nonsenseIn(read.data, terms, pace).map(({ path: at, message }) =>
        problemAt(at, message, document),
      )
    : read.error.issues.flatMap((issue) => problemsOf(issue, document));
  if (!read.success || unsaid.length + wrong.length > 0) return refusal([...unsaid, ...wrong]);
  const lineOf: ReadPolicy["lineOf"] = (at) =>
    document.hasIn(at) ? lineAt(offsetOf(at, document, "value")) : undefined;
  const { approvals, teams, attestation } = read.data;
  for (const part of [approvals, teams, attestation.pins]) linesOf.set(part, lineOf);
  const ofFeatures = terms.sections.flatMap(({ name, inTeams }) => (inTeams ? [name] : []));
  rememberStated(read.data, document.toJS(), ofFeatures);
  const timing = { ...pace, ...read.data.timing };
  const policy = { ...read.data, timing, operations: [...terms.operations] };
  return { policy: withSections(policy, terms.sections), lineOf };
}

/**
 * Where each part was read from. It is kept by part, because a policy may be put together from the
 * sections of two files.
 */
const linesOf = new WeakMap<object, ReadPolicy["lineOf"]>();

/**
 * ` (line 12)` for a value in this part of a policy: `approvals`, `teams`, or `attestation.pins`.
 * `path` leads to it from the top of the file. Empty when the part wasn't read from a file.
 */
export function lineWords(part: object, path: readonly PropertyKey[]): string {
  const line = linesOf.get(part)?.(path);
  return line === undefined ? "" : ` (line ${line})`;
}

/**
 * The content of each section as the file states it, without defaults. It is kept by section,
 * because a policy may be put together from the sections of two files.
 */
const stated = new WeakMap<object, unknown>();

function rememberStated(
  policy: Omit<PolicyRules, "timing">,
  file: unknown,
  ofFeatures: readonly string[],
): void {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema accepted it
  const rules = statedRules(file as Parameters<typeof statedRules>[0], ofFeatures);
  for (const name of objectKeys(rules)) stated.set(policy[name], rules[name]);
}

const objectKeys = <T extends object>(value: T) =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Object.keys forgets the names
  Object.keys(value) as (keyof T)[];

/**
 * 12 hex digits over what the file says about who may do what. A request waits under every file
 * that has the version it was made under. Timing, sections of features, and file locations aren't
 * part of it, nor are defaults (`statedRules`). `services` have a version of their own, because no
 * service approves or runs what waits.
 */
export function policyVersion(policy: Policy): string {
  const { access, approvals, protect, channels, limits, teams, attestation } = policy;
  const sections = { access, teams, approvals, protect, attestation, limits };
  const statedSections = Object.entries(sections).map(([name, part]) => [
    name,
    stated.get(part) ?? part,
  ]);
  return shortHash({ ...Object.fromEntries(statedSections), channels });
}

/** 12 hex digits over the section `services`: which programs may call the API, and for what. */
export const servicesVersion = ({ services }: Policy): string =>
  shortHash(stated.get(services) ?? services);

const shortHash = (value: unknown) =>
  createHash("sha256").update(canonical(value)).digest("hex").slice(0, 12);

/** A problem of a document, with the offset of its place in the text. */
interface Problem {
  offset: number | undefined;
  sentence: string;
}

/** Of a line `key: value`. */
type Part = "key" | "value";

function problemAt(
  path: readonly PropertyKey[],
  message: string,
  document: Document,
  part: Part = "value",
): Problem {
  return {
    offset: offsetOf(path, document, part),
    sentence: `${pathText(path)} ${message}`.trim(),
  };
}

function yamlWords({ code, message }: YAMLError): string {
  if (code === "BAD_ALIAS") return `${message}; put a * in quotes ("*")`;
  return code === "MULTIPLE_DOCS" ? "begins a second document: a policy is one" : message;
}

function problemsOf(issue: z.core.$ZodIssue, document: Document): readonly Problem[] {
  // `unsaidIn` reports an empty value already, so the schema's complaint would repeat it.
  if (issue.input === null) return [];
  if (issue.code !== "unrecognized_keys")
    return [problemAt(issue.path, complaint(issue), document)];
  const known = issue.message.split(" ");
  return issue.keys.map((key) => {
    const meant = nearest(key, known);
    const rest = meant === undefined ? `known are ${known.join(", ")}` : `did you mean ${meant}?`;
    return problemAt([...issue.path, key], `isn't known; ${rest}`, document, "key");
  });
}

function complaint(issue: z.core.$ZodIssue): string {
  if (issue.code !== "invalid_type") return issue.message;
  if (issue.input === undefined) return "is missing";
  // The message is one of this schema's own sentences, not zod's.
  if (!issue.message.startsWith("Invalid input")) return issue.message;
  if (issue.expected === "array") return "must be a list, like [a, b]";
  if (issue.expected === "object") return "must contain `name: value` lines";
  return issue.expected === "string"
    ? 'must be text; put it in quotes ("…")'
    : `must be a ${issue.expected}`;
}

/**
 * Keys and items that have lost their value to a comment or a slip. None of them may count as
 * absent, because the default for an absent key may allow more than the lost line did.
 */
function unsaidIn(document: Document): readonly Problem[] {
  const problems: Problem[] = [];
  const walk = (node: unknown, path: readonly PropertyKey[]): void => {
    if (isMap(node)) for (const { key, value } of node.items) walk(value, [...path, keyText(key)]);
    else if (isSeq(node))
      for (const [index, item] of node.items.entries()) walk(item, [...path, index]);
    else if (!isScalar(node) || node.value === null) {
      const words = path.length === 0 ? emptyFile : "is empty: give it a value, or remove it";
      problems.push(problemAt(path, words, document, "key"));
    }
  };
  walk(document.contents, []);
  return problems;
}

const emptyFile =
  "is empty: for a policy by which everyone can view and no one can change anything, write {}";

/** `approvals[1].targets[2]`, counted from 1 as people do. */
function pathText(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "the file";
  return path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${part + 1}]`;
    return text === "" ? String(part) : `${text}.${String(part)}`;
  }, "");
}

/** Without a value, the offset is its key's, and without that, its parent's. */
function offsetOf(
  path: readonly PropertyKey[],
  document: Document,
  part: Part,
): number | undefined {
  const value = start(document.getIn(path, true));
  if (path.length === 0 || (value !== undefined && part === "value")) return value;
  const above = path.slice(0, -1);
  const parent = document.getIn(above, true);
  const pair = isMap(parent)
    ? parent.items.find(({ key }) => keyText(key) === path.at(-1))
    : undefined;
  return start(pair?.key) ?? value ?? offsetOf(above, document, "value");
}

function start(node: unknown): number | undefined {
  return isNode(node) ? (node as Node).range?.[0] : undefined;
}

function keyText(key: unknown): string {
  return String(typeof key === "object" && key !== null && "value" in key ? key.value : key);
}
