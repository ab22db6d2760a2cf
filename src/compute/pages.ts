import type * as z from "zod";
import { check, jsonOf, unexpected } from "./answer.ts";
import { own } from "./body.ts";
import type { Endpoint } from "./endpoints.ts";
import type { Good } from "./http.ts";

export interface Page<T> {
  items: T[];
  total?: number;
  page?: number;
  perPage?: number;
  /** The service says that there are more, or that there are none. */
  more?: boolean;
}

/** A list in any of its forms: an array, or an object with the array under `key`, `data`, `items` or `results`. */
export function parsePage<T>(
  endpoint: Endpoint,
  good: Good,
  key: string,
  schema: z.ZodType<T>,
): Page<T> {
  const json = jsonOf(endpoint, good);
  const { status } = good.answer;
  const found = findList(json, key);
  if (!found) throw unexpected(endpoint, status, key, "is missing");
  return {
    items: found.list.map((each, index) =>
      check(endpoint, status, schema, each, `${key}[${index}]`),
    ),
    ...paging(json),
  };
}

function findList(json: unknown, key: string): { list: unknown[] } | undefined {
  if (Array.isArray(json)) return { list: json };
  for (const name of [key, "data", "items", "results"]) {
    const value = own(json, name);
    if (Array.isArray(value)) return { list: value };
    // An empty list is null in some languages' JSON.
    if (value === null && name === key) return { list: [] };
  }
  const inner = own(own(json, "data"), key);
  return Array.isArray(inner) ? { list: inner } : undefined;
}

function paging(json: unknown): Omit<Page<never>, "items"> {
  const places = [json, own(json, "pagination"), own(json, "meta"), own(json, "data")];
  const count = (...names: string[]): number | undefined => {
    for (const place of places) {
      for (const name of names) {
        const value = own(place, name);
        if (typeof value === "number" && Number.isInteger(value) && value >= 0) return value;
      }
    }
    return undefined;
  };
  const total = count("total", "total_count");
  const page = count("page");
  const perPage = count("per_page", "page_size");
  const flag = places
    .map((place) => own(place, "has_more"))
    .find((value) => typeof value === "boolean");
  const next = places.map((place) => own(place, "next_page")).find((value) => value !== undefined);
  const more =
    flag ?? (next === undefined ? undefined : next !== null && next !== false && next !== "");
  return {
    ...(total === undefined ? {} : { total }),
    ...(page === undefined ? {} : { page }),
    ...(perPage === undefined || perPage === 0 ? {} : { perPage }),
    ...(more === undefined ? {} : { more }),
  };
}

/** Pages read at the same time once their number is known. */
const atOnce = 8;

/**
 * Reads all pages, at most `most` records, each once. The service may cap per_page, leave out `total`, miscount, or
 * ignore `page` and send the first one again: a page that brings nothing new is the last. `complete` is false when
 * the service announced more records than it sent.
 */
export async function collectPages<T extends { id: string }>(
  readPage: (page: number) => Promise<Page<T>>,
  first: Page<T>,
  most: number,
  onPage: (items: readonly T[]) => void = () => {},
): Promise<{ items: T[]; complete: boolean }> {
  const seen = new Map<string, T>();
  const take = (pages: readonly Page<T>[]): T[] => {
    const fresh = new Map(pages.flatMap((page) => page.items).map((item) => [item.id, item]));
    for (const [id, item] of fresh) {
      if (seen.has(id) || seen.size >= most) fresh.delete(id);
      else seen.set(id, item);
    }
    return [...fresh.values()];
  };
  const total = Math.min(first.total ?? Number.POSITIVE_INFINITY, most);
  let last = first;
  let next = 2;
  let fresh = take([first]);
  while (fresh.length > 0 && seen.size < total && !isLast(last)) {
    // What the first page really held is the page size, whatever was asked for.
    const left =
      first.total === undefined ? 1 : Math.ceil((total - seen.size) / first.items.length);
    const wave = Array.from({ length: Math.min(left, atOnce) }, (_, offset) => next + offset);
    const reading = Promise.all(wave.map((page) => readPage(page)));
    // Now that the next pages are on their way, others may use the connections that are left.
    onPage(fresh);
    const pages = await reading;
    next += wave.length;
    fresh = take(pages);
    last = pages.at(-1) ?? last;
  }
  if (fresh.length > 0) onPage(fresh);
  return { items: [...seen.values()], complete: first.total === undefined || seen.size >= total };
}

function isLast(page: Page<unknown>): boolean {
  if (page.items.length === 0) return true;
  if (page.more !== undefined) return !page.more;
  return page.total === undefined && page.perPage !== undefined && page.items.length < page.perPage;
}
