import { parseAst } from "vitest/node";
import type { Sources } from "./sources.ts";

/** Pronouns and leftovers that say nothing about a value. The noun does: `vm`, `requester`, `reason`. */
const emptyNames = new Set(["by", "found", "is", "its", "one", "said", "theirs", "told", "what"]);

/** A member with such a name doesn't say what it is, or what it does to what. */
const emptyMembers = new Set([
  ...emptyNames,
  "asked",
  "given",
  "hear",
  "saw",
  "says",
  "tell",
  "tells",
]);

/** Members that keep their name, because it is a promise to whoever reads or wrote the value. */
const promisedMembers = new Set([
  // Redis holds these, also those that another release wrote.
  "AlertEvent.is",
  "AlertGroup.told",
  "AlertRecord.told",
  "Freeze.by",
  "FreezeNews.by",
  "FreezeNews.is",
  "KeptPin.by",
  "KnownSnapshot.by",
  "Lack.what",
  "Outcome.is",
  "ProposalRecord.by",
  "Review.by",
  "ReviewSignature.by",
  "RolloutProgress.by",
  "Subscription.by",
  // The sealed records of the audit trail hold the kind of each record.
  "AttestationRecord.what",
  "FreezeRecord.what",
  // Files that people keep: a bundle of evidence, and an excerpt of the trail.
  "Act.says",
  "EvidenceBundle.by",
  // Programs read these: the API, `attestation check --json`, and the log line `request.moved`.
  "AppraisalReason.says",
  "ProposalState.by",
  "Shortfall.by",
  "Step.by",
  "Verification.is",
]);

interface Syntax {
  type: string;
  start: number;
  [member: string]: unknown;
}

interface Declaration {
  /** What declares a member. */
  owner?: string;
  name: string;
  start: number;
}

const isSyntax = (value: unknown): value is Syntax =>
  typeof value === "object" && value !== null && typeof Reflect.get(value, "type") === "string";

function partsOf(value: unknown): readonly Syntax[] {
  if (Array.isArray(value)) return value.flatMap(partsOf);
  return isSyntax(value) ? [value] : [];
}

/** Members of a declaring syntax node that hold the declared names. */
const declaring = ["id", "local", "param", "params", "parameters"];

/** Variables, caught errors, imports, functions, classes, and types that have parameters. */
const declarers =
  /^(VariableDeclarator|CatchClause|Import\w*Specifier|(TS)?\w*(Function|Class)\w*|TS(Call|Construct|Method|Index)Signature\w*|TSConstructorType)$/;

/** The names in the place of a declaration: one name, or those of a pattern. */
function namesIn(place: Syntax): readonly Declaration[] {
  switch (place.type) {
    case "Identifier":
      return [{ name: String(place["name"]), start: place.start }];
    case "ObjectPattern":
      return partsOf(place["properties"]).flatMap(namesIn);
    case "Property":
      return partsOf(place["value"]).flatMap(namesIn);
    case "ArrayPattern":
      return partsOf(place["elements"]).flatMap(namesIn);
    case "AssignmentPattern":
      return partsOf(place["left"]).flatMap(namesIn);
    case "RestElement":
      return partsOf(place["argument"]).flatMap(namesIn);
    default:
      return [];
  }
}

function declarationsIn(syntax: Syntax): readonly Declaration[] {
  const own = declarers.test(syntax.type)
    ? declaring.flatMap((member) => partsOf(syntax[member])).flatMap(namesIn)
    : [];
  return [...own, ...Object.values(syntax).flatMap(partsOf).flatMap(declarationsIn)];
}

/** Members that types and classes declare, and functions in the object that a factory returns. */
const memberDeclarers = /^(TS(Property|Method)Signature|PropertyDefinition|MethodDefinition)$/;

function isMember({ type, value }: Syntax): boolean {
  if (type !== "Property") return memberDeclarers.test(type);
  return isSyntax(value) && /Function/.test(value.type);
}

/** The name of the type, class, function, or variable that this declares, whose members are in it. */
function ownerIn(syntax: Syntax): string | undefined {
  const name = syntax["id"];
  return isSyntax(name) && name.type === "Identifier" ? String(name["name"]) : undefined;
}

function membersIn(syntax: Syntax, outer = ""): readonly Declaration[] {
  const owner = ownerIn(syntax) ?? outer;
  const key = syntax["key"];
  const isNamed = isMember(syntax) && isSyntax(key) && key.type === "Identifier";
  const own = isNamed ? [{ owner, name: String(key["name"]), start: key.start }] : [];
  const inner = Object.values(syntax)
    .flatMap(partsOf)
    .flatMap((part) => membersIn(part, owner));
  return [...own, ...inner];
}

const placesOf = (sources: Sources, find: (syntax: Syntax) => readonly Declaration[]) =>
  [...sources].flatMap(([path, text]) =>
    partsOf(parseAst(text, { lang: "ts" }))
      .flatMap(find)
      .toSorted((a, b) => a.start - b.start)
      .map(({ owner, name, start }) => {
        const line = text.slice(0, start).split("\n").length;
        return {
          name,
          whole: owner === undefined ? name : `${owner}.${name}`,
          at: `${path}:${line}`,
        };
      }),
  );

/** Declarations whose name is empty, each as `file:line name`. */
export function emptyDeclarations(sources: Sources): readonly string[] {
  return placesOf(sources, declarationsIn)
    .filter(({ name }) => emptyNames.has(name))
    .map(({ at, name }) => `${at} ${name}`);
}

/**
 * Members whose name is empty, each as `file:line Owner.name`, and promises that no member keeps.
 */
export function emptyMemberNames(
  sources: Sources,
  promised: ReadonlySet<string> = promisedMembers,
): readonly string[] {
  const empty = placesOf(sources, membersIn).filter(({ name }) => emptyMembers.has(name));
  const kept = new Set(empty.map(({ whole }) => whole));
  return [
    ...empty.filter(({ whole }) => !promised.has(whole)).map(({ at, whole }) => `${at} ${whole}`),
    ...[...promised].filter((whole) => !kept.has(whole)).map((whole) => `nowhere ${whole}`),
  ];
}
