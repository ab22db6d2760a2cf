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
 * gatehouse.yml with every default filled in and every duration in milliseconds. Access lists contain Slack user IDs
 * (`U…`, `W…`), user group IDs (`S…`), or `*` for every full member of the workspace.
 */
export type Policy = Frozen<
  PolicyRules & {
    /** What its rules can be about: a rename is judged by all that it takes a project out of. */
    operations: Operation[];
    timing: Pace;
  }
> &
  WithSections;
export type Access = Policy["access"];
export type Team = Policy["teams"][string];
export type ServiceRule = Policy["services"][string];
export type Pin = Policy["attestation"]["pins"][number];

/** A policy, and the text that it was read from. */
export interface ReadPolicy {
  policy: Policy;
  /** The line of a value, 1 for the first; undefined where the file doesn't have it. */
  lineOf(path: readonly PropertyKey[]): number | undefined;
}

const longestText = 1_000_000;
/** More than that many characters take. */
export const mostPolicyBytes = 4 * longestText;

/** The policy without a file: everyone may view, no one may change anything. */
export function emptyPolicy(pace = usualPace, sections: PolicyTerms["sections"] = []): Policy {
  const { timing, ...rest } = policySchema(sections).parse({});
  rememberStated(rest, {}, []);
  return withSections({ ...rest, timing: { ...pace, ...timing }, operations: [] }, sections);
}

/**
 * Reads gatehouse.yml. Problems begin with their place: `gatehouse.yml line 3: access.oprate isn't known; did you mean
 * operate?`. `terms` come from commands and features, which are layers above this one.
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
  const told = (problems: readonly Problem[]) => ({
    problems: problems
      .toSorted((a, b) => (a.offset ?? 0) - (b.offset ?? 0))
      // A key may hold a line break, which must not make a line of its own
      .map(({ offset, sentence }) => printableLine(`${path} line ${lineAt(offset)}: ${sentence}`)),
  });
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
  });
  // An unknown tag is a warning only, and its value isn't read as it says
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
  if (misread.length > 0) return told(misread);
  const unsaid = unsaidIn(document);
  const read = policySchema(terms.sections).safeParse(document.toJS(), { reportInput: true });
  const wrong = read.success
    ? nonsenseIn(read.data, terms, pace).map(({ path: at, message }) =>
        problemAt(at, message, document),
      )
    : read.error.issues.flatMap((issue) => problemsOf(issue, document));
  if (!read.success || unsaid.length + wrong.length > 0) return told([...unsaid, ...wrong]);
  const lineOf: ReadPolicy["lineOf"] = (at) =>
    document.hasIn(at) ? lineAt(place(at, document, false)) : undefined;
  for (const part of [read.data.approvals, read.data.teams]) linesOf.set(part, lineOf);
  const ofFeatures = terms.sections.flatMap(({ name, inTeams }) => (inTeams ? [name] : []));
  rememberStated(read.data, document.toJS(), ofFeatures);
  const timing = { ...pace, ...read.data.timing };
  const policy = { ...read.data, timing, operations: [...terms.operations] };
  return { policy: withSections(policy, terms.sections), lineOf };
}

/** Where a section was read from: a policy may be put together from the sections of two files. */
const linesOf = new WeakMap<object, ReadPolicy["lineOf"]>();

/** ` (line 12)` of a value under `approvals` or `teams`; empty where it was read from no file. */
export function lineWords(
  policy: Pick<Policy, "approvals" | "teams">,
  path: readonly ["approvals" | "teams", ...PropertyKey[]],
): string {
  const line = linesOf.get(policy[path[0]])?.(path);
  return line === undefined ? "" : ` (line ${line})`;
}

/** What the file says in a section: a policy may be put together from the sections of two files. */
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
 * 12 hex digits over what the file says about who may do what; what is requested under one version waits under every file that
 * has it. Timing, what features add, and places of files aren't part of it, nor are defaults (`statedRules`). `services` have a version
 * of their own: no service approves or runs what waits. They were part of this one, so their empty section still is.
 */
export function policyVersion(policy: Policy): string {
  const { access, approvals, protect, channels, limits, teams, attestation } = policy;
  const sections = { access, teams, approvals, protect, attestation, limits };
  const said = Object.entries(sections).map(([name, part]) => [name, stated.get(part) ?? part]);
  return shortHash({ ...Object.fromEntries(said), channels, services: {} });
}

/** 12 hex digits over who comes in as a program, and what for. */
export const servicesVersion = ({ services }: Policy): string =>
  shortHash(stated.get(services) ?? services);

const shortHash = (value: unknown) =>
  createHash("sha256").update(canonical(value)).digest("hex").slice(0, 12);

/** A problem of a document, with the offset of its place in the text. */
interface Problem {
  offset: number | undefined;
  sentence: string;
}

function problemAt(
  path: readonly PropertyKey[],
  message: string,
  document: Document,
  isOfKey = false,
): Problem {
  return {
    offset: place(path, document, isOfKey),
    sentence: `${pathText(path)} ${message}`.trim(),
  };
}

function yamlWords({ code, message }: YAMLError): string {
  if (code === "BAD_ALIAS") return `${message}; put a * in quotes ("*")`;
  return code === "MULTIPLE_DOCS" ? "begins a second document: a policy is one" : message;
}

function problemsOf(issue: z.core.$ZodIssue, document: Document): readonly Problem[] {
  // Of what is empty the schema has nothing to add
  if (issue.input === null) return [];
  if (issue.code !== "unrecognized_keys")
    return [problemAt(issue.path, complaint(issue), document)];
  const known = issue.message.split(" ");
  return issue.keys.map((key) => {
    const meant = nearest(key, known);
    const rest = meant === undefined ? `known are ${known.join(", ")}` : `did you mean ${meant}?`;
    return problemAt([...issue.path, key], `isn't known; ${rest}`, document, true);
  });
}

function complaint(issue: z.core.$ZodIssue): string {
  if (issue.code !== "invalid_type") return issue.message;
  if (issue.input === undefined) return "is missing";
  // A sentence of the schema's own, not zod's
  if (!issue.message.startsWith("Invalid input")) return issue.message;
  if (issue.expected === "array") return "must be a list, like [a, b]";
  if (issue.expected === "object") return "must contain `name: value` lines";
  return issue.expected === "string"
    ? 'must be text; put it in quotes ("…")'
    : `must be a ${issue.expected}`;
}

/**
 * Keys and items that a comment or a slip has emptied: none of them may count as absent, because the default of what is absent may
 * let in more than the line that was lost.
 */
function unsaidIn(document: Document): readonly Problem[] {
  const found: Problem[] = [];
  const walk = (node: unknown, path: readonly PropertyKey[]): void => {
    if (isMap(node)) for (const { key, value } of node.items) walk(value, [...path, keyText(key)]);
    else if (isSeq(node))
      for (const [index, item] of node.items.entries()) walk(item, [...path, index]);
    else if (!isScalar(node) || node.value === null) {
      const words = path.length === 0 ? emptyFile : "is empty: give it a value, or remove it";
      found.push(problemAt(path, words, document, true));
    }
  };
  walk(document.contents, []);
  return found;
}

const emptyFile =
  "is empty: for a policy by which everyone can view and no one can change anything, write {}";

/** `approvals[1].targets[2]`: counted from 1, as people do. */
function pathText(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "the file";
  return path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${part + 1}]`;
    return text === "" ? String(part) : `${text}.${String(part)}`;
  }, "");
}

/** The offset of the value (or its key); for something missing, of its parent. */
function place(
  path: readonly PropertyKey[],
  document: Document,
  wantsKey: boolean,
): number | undefined {
  const value = start(document.getIn(path, true));
  if (path.length === 0 || (value !== undefined && !wantsKey)) return value;
  const above = path.slice(0, -1);
  const parent = document.getIn(above, true);
  const pair = isMap(parent)
    ? parent.items.find(({ key }) => keyText(key) === path.at(-1))
    : undefined;
  return start(pair?.key) ?? value ?? place(above, document, false);
}

function start(node: unknown): number | undefined {
  return isNode(node) ? (node as Node).range?.[0] : undefined;
}

function keyText(key: unknown): string {
  return String(typeof key === "object" && key !== null && "value" in key ? key.value : key);
}
