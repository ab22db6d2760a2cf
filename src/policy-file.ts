import { createHash } from "node:crypto";
import {
  isAlias,
  isMap,
  isNode,
  isSeq,
  LineCounter,
  parseDocument,
  type Document,
  type Node,
} from "yaml";
import type * as z from "zod";
import { canonical } from "./canonical.ts";
import { nearest } from "./nearest.ts";
import { policySchema, type Policy } from "./policy-schema.ts";

export { parseDuration, type Weekday } from "./policy-values.ts";
export type { Timing } from "./policy-timing.ts";
export type { Access, ApprovalRule, DigestRule, Pin, Policy } from "./policy-schema.ts";

export type PolicyResult = { policy: Policy } | { problems: readonly string[] };

const longestText = 1_000_000;

/** What holds without a policy file: everyone may view, nobody may change anything. */
export function emptyPolicy(): Policy {
  return policySchema.parse({});
}

/**
 * Reads gatehouse.yml. Every problem is one sentence that begins with the place, e.g.
 * `gatehouse.yml line 3: access.oprate isn't known; did you mean operate?`. A key without a value counts as not there.
 */
export function parsePolicy(text: string, path: string): PolicyResult {
  if (text.length > longestText)
    return { problems: [`${path}: is larger than ${longestText} characters`] };
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
  });
  const at = (offset: number | undefined) => `${path} line ${lines.linePos(offset ?? 0).line}`;
  if (document.errors.length > 0) {
    return { problems: document.errors.map((error) => `${at(error.pos[0])}: ${error.message}`) };
  }
  const value = plainValue(document);
  if (value === undefined)
    return {
      problems: [
        `${path}: refers to itself too often, or to something that is not there (anchors and aliases)`,
      ],
    };
  const read = policySchema.safeParse(value.value ?? {}, { reportInput: true });
  if (read.success) return { policy: read.data };
  const problems = read.error.issues.flatMap((issue) => problemsOf(issue, document));
  problems.sort((a, b) => (a.offset ?? 0) - (b.offset ?? 0));
  return { problems: problems.map(({ offset, sentence }) => `${at(offset)}: ${sentence}`) };
}

/** 12 hex digits over everything that decides who may do what. Timing and digests are left out: tuning them cancels nothing. */
export function policyVersion(policy: Policy): string {
  const { access, approvals, protect, channels, attestation, limits } = policy;
  const deciding = { access, approvals, protect, channels, attestation, limits };
  return createHash("sha256").update(canonical(deciding)).digest("hex").slice(0, 12);
}

/** The document as plain values, `undefined` for empty ones (`operate:` alone); undefined for an alias bomb. */
function plainValue(document: Document): { value: unknown } | undefined {
  try {
    return { value: withoutNulls(document.toJS({ maxAliasCount: 100 })) };
  } catch {
    return undefined;
  }
}

function withoutNulls(value: unknown): unknown {
  if (value === null) return undefined;
  if (Array.isArray(value))
    return value.map((item: unknown) => (item === null ? null : withoutNulls(item)));
  if (typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, withoutNulls(inner)]),
  );
}

interface Problem {
  offset: number | undefined;
  sentence: string;
}

function problemsOf(issue: z.core.$ZodIssue, document: Document): Problem[] {
  const where = pathText(issue.path);
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => {
      const known = issue.message.split(" ");
      const meant = nearest(key, known);
      const rest = meant === undefined ? `known are ${known.join(", ")}` : `did you mean ${meant}?`;
      return {
        offset: place([...issue.path, key], document, true),
        sentence: `${pathText([...issue.path, key])} isn't known; ${rest}`,
      };
    });
  }
  return [
    { offset: place(issue.path, document, false), sentence: `${where} ${complaint(issue)}`.trim() },
  ];
}

function complaint(issue: z.core.$ZodIssue): string {
  if (issue.code !== "invalid_type") return issue.message;
  if (issue.input === undefined) return "is missing";
  // a sentence of our own, unless zod wrote its usual one
  if (!issue.message.startsWith("Invalid input")) return issue.message;
  if (issue.expected === "array") return "should be a list, like [a, b]";
  if (issue.expected === "object") return "should hold `name: value` lines";
  return issue.expected === "string"
    ? 'should be text; put it in quotes ("…")'
    : `should be a ${issue.expected}`;
}

/** `approvals[1].targets[2]`: counted from 1, as people do. */
function pathText(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "the file";
  return path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${part + 1}]`;
    return text === "" ? String(part) : `${text}.${String(part)}`;
  }, "");
}

/** Where the value (or its key) stands in the text; for something missing, where it should be. */
function place(
  path: readonly PropertyKey[],
  document: Document,
  wantsKey: boolean,
): number | undefined {
  let node: unknown = document.contents;
  let offset = start(node);
  for (const [index, part] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find((item) => keyText(item.key) === String(part));
      if (pair === undefined) break;
      const isKey = (wantsKey && index === path.length - 1) || start(pair.value) === undefined;
      offset = start(isKey ? pair.key : pair.value) ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(part)];
      offset = start(node) ?? offset;
    } else break;
  }
  return offset;
}

function start(node: unknown): number | undefined {
  return isNode(node) ? (node as Node).range?.[0] : undefined;
}

function keyText(key: unknown): string {
  return String(typeof key === "object" && key !== null && "value" in key ? key.value : key);
}
