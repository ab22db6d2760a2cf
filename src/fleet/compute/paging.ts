import { isRecord } from "./compute.ts";

export type Query = Readonly<Record<string, string>>;

/** What an answer with a list says about its pages. The service documents little of it. */
export interface Paging {
  total: number | undefined;
  page: number | undefined;
  perPage: number | undefined;
  /** Whether the service says that there are more records. */
  more: boolean | undefined;
  /** The parameters of the next page, where it isn't found by its number. */
  next: Query | undefined;
}

/** Headers that tell about pages. `Link` is RFC 8288; the others are usual, and in no standard. */
export const pagingHeaders = ["link", "x-next-page", "x-total-count", "x-total"] as const;
export type PagingHeaders = Partial<Record<(typeof pagingHeaders)[number], string | undefined>>;

/** Where an answer tells about pages, beside the list itself. */
const places = new Set("pagination paging meta pageinfo links data".split(" "));

/** Fields that hold the mark of the next page, with the parameter in which services take it. */
const marks: readonly (readonly [field: string, parameter: string])[] = [
  ["nextcursor", "cursor"],
  ["endcursor", "cursor"],
  ["nextpagetoken", "page_token"],
  ["nexttoken", "next_token"],
  ["nextmarker", "marker"],
  ["continuationtoken", "continuation_token"],
];

const linkFields = "next nextpage nextlink nexturl nextpageurl odata.nextlink".split(" ");

/**
 * Reads what an answer says about its pages, in any spelling of the usual names. A link counts for
 * its parameters alone, so that no answer leads Gatehouse and its key to another address.
 */
export function readPaging(json: unknown, headers: PagingHeaders): Paging {
  const fields = new Map<string, unknown>();
  collect(json, 0, fields);
  const count = (...names: string[]) =>
    names.map((name) => countOf(fields.get(name))).find((value) => value !== undefined);
  const page = count("page", "currentpage", "pagenumber");
  const perPage = count("perpage", "pagesize") || undefined;
  const total =
    count("total", "totalcount", "totalitems", "totalentries") ??
    countOf(headers["x-total-count"] ?? headers["x-total"]);
  const lastPage = count("lastpage", "totalpages", "pagecount");
  const isThereMore = ["hasmore", "hasnext", "hasnextpage"]
    .map((name) => fields.get(name))
    .find((value) => typeof value === "boolean");
  const next = nextOf(fields, headers);
  const isCounted = page !== undefined && lastPage !== undefined ? page < lastPage : undefined;
  const more = isThereMore ?? (next === undefined ? isCounted : next !== "none");
  const isByNumber =
    typeof next !== "object" || Object.keys(next).every((name) => byNumber.has(name));
  return { total, page, perPage, more, next: more && !isByNumber ? next : undefined };
}

const byNumber = new Set(["page", "per_page", "page_size"]);

/** Puts the fields of an answer and of its places for paging together, the outer ones first. */
function collect(value: unknown, depth: number, into: Map<string, unknown>): void {
  if (!isRecord(value)) return;
  const entries = Object.entries(value).map(([name, field]): [string, unknown] => [
    name.toLowerCase().replaceAll(/[_@$-]/g, ""),
    field,
  ]);
  for (const [name, field] of entries) if (!into.has(name)) into.set(name, field);
  if (depth < 2)
    for (const [name, field] of entries) if (places.has(name)) collect(field, depth + 1, into);
}

/**
 * The parameters of the next page. `none` where the answer says that there is none, `some` where
 * there is one that can't be read; undefined where it doesn't say.
 */
function nextOf(
  fields: Map<string, unknown>,
  headers: PagingHeaders,
): Query | "none" | "some" | undefined {
  for (const [field, parameter] of marks) {
    const mark = fields.get(field);
    if ((typeof mark === "string" && mark !== "") || typeof mark === "number")
      return { [parameter]: String(mark) };
  }
  const link = headers.link === undefined ? undefined : linkTo("next", headers.link);
  const next = [link, headers["x-next-page"], ...linkFields.map((name) => fields.get(name))].find(
    (value) => value !== undefined,
  );
  if (isRecord(next)) return parametersOf(next["href"] ?? next["url"] ?? next);
  if (next !== undefined) return parametersOf(next);
  return headers.link !== undefined || marks.some(([field]) => fields.has(field))
    ? "none"
    : undefined;
}

function parametersOf(next: unknown): Query | "none" | "some" {
  if (next === null || next === undefined || next === false || next === "") return "none";
  const page = countOf(next);
  if (page !== undefined) return { page: String(page) };
  if (typeof next !== "string" || !/^(https?:\/\/|\/|\?)/.test(next)) return "some";
  const query = URL.parse(next, "http://localhost")?.searchParams;
  return query?.size ? Object.fromEntries(query) : "some";
}

/** The target of a link in a `Link` header: `<https://…?page=2>; rel="next"`. */
function linkTo(relation: string, header: string): string | undefined {
  for (const [, target, parameters = ""] of header.matchAll(/<([^>]*)>([^<]*)/g)) {
    const relations = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,]+))/i.exec(parameters);
    const names = (relations?.[1] ?? relations?.[2] ?? "").toLowerCase().split(/\s+/);
    if (names.includes(relation)) return target;
  }
  return undefined;
}

function countOf(value: unknown): number | undefined {
  const count = typeof value === "string" && /^\d{1,9}$/.test(value) ? Number(value) : value;
  return typeof count === "number" && Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}
