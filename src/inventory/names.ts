import { fold } from "../text/glob.ts";
import { editDistance } from "../text/nearest.ts";

/** The most names on a page: few enough to rebuild one at once, many enough that there are few pages. */
const pageSize = 128;
/** Of the names that people give. Other characters are only guessed among the names that are compared. */
const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789-_. ";
/** Shorter names get no guesses: one typo makes them something else. */
const shortestToGuess = 3;
/** Longer names have too many variants to try. */
const longestToGuess = 64;

/** A run of the sorted names. Joined as one text, so that one search tells whether any of them contains something. */
interface Page {
  names: string[];
  text: string | undefined;
}

/**
 * IDs by name, ignoring case. `containing` and `near` only suggest. The names are kept sorted, in pages: a name that is
 * added or removed changes one page, so the first search after a change doesn't sort or join 100,000 names.
 */
export function createNames() {
  const ids = new Map<string, Set<string>>();
  const pages: Page[] = [{ names: [], text: undefined }];

  /** The page where a folded name is, or would be, and its place there. */
  function placeOf(name: string): { page: Page; pageAt: number; at: number } {
    const pageAt = Math.max(0, countBefore(pages, ({ names }) => (names[0] ?? "") <= name) - 1);
    const page = pages[pageAt] ?? { names: [], text: undefined };
    return { page, pageAt, at: countBefore(page.names, (other) => other < name) };
  }

  function insert(name: string): void {
    const { page, pageAt, at } = placeOf(name);
    page.names.splice(at, 0, name);
    page.text = undefined;
    if (page.names.length > pageSize)
      pages.splice(pageAt + 1, 0, { names: page.names.splice(pageSize / 2), text: undefined });
  }

  function takeOut(name: string): void {
    const { page, pageAt, at } = placeOf(name);
    page.names.splice(at, 1);
    page.text = undefined;
    const next = pages[pageAt + 1];
    if (page.names.length === 0 && pages.length > 1) pages.splice(pageAt, 1);
    else if (next && page.names.length + next.names.length <= pageSize / 2)
      pages.splice(pageAt, 2, { names: [...page.names, ...next.names], text: undefined });
  }

  /** Folded names that begin with the folded text, in order. */
  function beginning(wanted: string, most: number): string[] {
    const { pageAt, at } = placeOf(wanted);
    const found: string[] = [];
    for (const [index, { names }] of pages.slice(pageAt).entries()) {
      for (const name of index === 0 ? names.slice(at) : names) {
        if (found.length === most || !name.startsWith(wanted)) return found;
        found.push(name);
      }
    }
    return found;
  }

  return {
    add(name: string, id: string): void {
      const key = fold(name);
      const bearers = ids.get(key);
      if (bearers) {
        bearers.add(id);
        return;
      }
      ids.set(key, new Set([id]));
      insert(key);
    },
    remove(name: string, id: string): void {
      const key = fold(name);
      const bearers = ids.get(key);
      if (!bearers?.delete(id) || bearers.size > 0) return;
      ids.delete(key);
      takeOut(key);
    },
    idsOf: (name: string): readonly string[] => [...(ids.get(fold(name)) ?? [])],

    /** Folded names that begin with what was typed, then those with a word that does, then the others that contain it. */
    containing(typed: string, most: number): string[] {
      const wanted = fold(typed);
      if (wanted === "") return [];
      const found = beginning(wanted, most);
      const others: string[] = [];
      for (const page of pages) {
        if (found.length === most) return found;
        page.text ??= page.names.join("\n");
        if (!page.text.includes(wanted)) continue;
        for (const name of page.names) {
          const at = name.indexOf(wanted);
          if (at <= 0) continue;
          const some = "-_. /".includes(name.charAt(at - 1)) ? found : others;
          if (some.length < most) some.push(name);
        }
      }
      return [...found, ...others].slice(0, most);
    },

    /** Folded names that are one typo away, or two: the latter among the sorted names around it, the most alike first. */
    near(typed: string, most: number): string[] {
      const wanted = fold(typed);
      if (wanted.length < shortestToGuess) return [];
      const allowed = wanted.length < 6 ? 1 : 2;
      const { pageAt } = placeOf(wanted);
      const around = pages
        .slice(Math.max(0, pageAt - 1), pageAt + 2)
        .flatMap(({ names }) => names)
        .filter((name) => editDistance(wanted, name, allowed) <= allowed)
        .toSorted((a, b) => commonBeginning(b, wanted) - commonBeginning(a, wanted));
      const oneAway = oneSlipAway(wanted, alphabet).filter((variant) => ids.has(variant));
      return [...new Set([...oneAway, ...around])].slice(0, most);
    },
  };
}

function commonBeginning(a: string, b: string): number {
  let length = 0;
  while (length < b.length && a.charCodeAt(length) === b.charCodeAt(length)) length += 1;
  return length;
}

/** How many come before, of what is sorted by that. */
function countBefore<T>(sorted: readonly T[], isBefore: (one: T) => boolean): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    const one = sorted[middle];
    if (one !== undefined && isBefore(one)) from = middle + 1;
    else to = middle;
  }
  return from;
}

/**
 * Everything one typo away: a character too many, missing, wrong, or two swapped (https://norvig.com/spell-correct.html).
 * The cost doesn't depend on the number of names.
 */
export function* oneSlipAway(typed: string, characters: string): Generator<string> {
  if (typed.length < shortestToGuess || typed.length > longestToGuess) return;
  for (let at = 0; at <= typed.length; at++) {
    const before = typed.slice(0, at);
    const rest = typed.slice(at);
    const after = rest.slice(1);
    if (rest !== "") yield before + after;
    if (after !== "") yield before + after.charAt(0) + rest.charAt(0) + after.slice(1);
    for (const character of characters) {
      if (rest !== "") yield before + character + after;
      yield before + character + rest;
    }
  }
}
