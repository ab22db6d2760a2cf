import { parseAst } from "vitest/node";
import type { Sources } from "./sources.ts";

/**
 * Pronouns and leftovers that say nothing about a value. The noun does: `vm`, `requester`, `reason`. oxlint's `id-denylist` would also
 * refuse members of records and types with these names, which Redis and the audit trail hold.
 */
const emptyNames = new Set(["by", "found", "is", "its", "one", "said", "theirs", "told", "what"]);

interface Syntax {
  type: string;
  start: number;
  [member: string]: unknown;
}

interface Declaration {
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

/** Declarations whose name is empty, each as `file:line name`. Members of records and types are none. */
export function emptyDeclarations(sources: Sources): readonly string[] {
  return [...sources].flatMap(([path, text]) =>
    partsOf(parseAst(text, { lang: "ts" }))
      .flatMap(declarationsIn)
      .filter(({ name }) => emptyNames.has(name))
      .toSorted((a, b) => a.start - b.start)
      .map(({ name, start }) => `${path}:${text.slice(0, start).split("\n").length} ${name}`),
  );
}
