import { fold } from "../text/glob.ts";
import { editDistance } from "../text/nearest.ts";

/** New names wait in a small set before they are sorted in: a burst must not block the process. */
const sortInAt = 8192;
const tidyAt = 256;
/** Substring hits considered before the best are taken. */
const hitsWanted = 200;
/** Sorted names to each side that are compared by edit distance. */
const neighbors = 100;
const alphabetSize = 64;
/** Shorter names get no guesses: one typo makes them something else. */
const shortestToGuess = 3;
/** Longer names have too many variants to try. */
const longestToGuess = 64;

/** IDs by name, ignoring case. `containing` and `near` only suggest. */
export interface NameIndex {
  add(name: string, id: string): void;
  remove(name: string, id: string): void;
  idsOf(name: string): readonly string[];
  /** Folded names that begin with, then that contain what was typed: beginnings of words first. */
  containing(typed: string, most: number): string[];
  /** Folded names that are one or two typos away. */
  near(typed: string, most: number): string[];
  /** Sorts new names in; call it after a batch of changes. */
  tidy(): void;
}

export function createNameIndex(): NameIndex {
  const ids = new Map<string, string | Set<string>>();
  const alphabet = new Set<string>();
  let sorted: string[] = [];
  /** All sorted names in one string, a line each: one search instead of a hundred thousand. */
  let text = "";
  let starts = new Uint32Array(0);
  const fresh = new Set<string>();
  let gone = 0;

  function sortIn(): void {
    const live = gone === 0 ? sorted : sorted.filter((name) => ids.has(name));
    sorted = merge(live, [...fresh].filter((name) => ids.has(name)).toSorted(byCodeUnit));
    fresh.clear();
    gone = 0;
    starts = new Uint32Array(sorted.length);
    let at = 0;
    for (const [index, name] of sorted.entries()) {
      starts[index] = at;
      at += name.length + 1;
    }
    text = sorted
      .map((name) => (name.includes("\n") ? name.replaceAll("\n", " ") : name))
      .join("\n");
  }

  /** Index of the first sorted name that is not before this one. */
  function placeOf(name: string): number {
    return firstWhere(sorted.length, (index) => (sorted[index] ?? "") >= name);
  }

  function beginning(typed: string, most: number): string[] {
    const found = [...fresh].filter((name) => name.startsWith(typed) && ids.has(name));
    for (let at = placeOf(typed), taken = 0; taken < most && at < sorted.length; at++) {
      const name = sorted[at] ?? "";
      if (!name.startsWith(typed)) break;
      if (!ids.has(name) || fresh.has(name)) continue;
      found.push(name);
      taken += 1;
    }
    return found.toSorted(byCodeUnit).slice(0, most);
  }

  function holding(typed: string): string[] {
    const found = new Set<string>();
    for (const name of fresh) if (name.includes(typed) && ids.has(name)) found.add(name);
    let at = text.indexOf(typed);
    while (at !== -1 && found.size < hitsWanted) {
      const index = firstWhere(starts.length, (candidate) => (starts[candidate] ?? 0) > at) - 1;
      const name = sorted[index] ?? "";
      if (ids.has(name) && name.includes(typed)) found.add(name);
      at = text.indexOf(typed, (starts[index] ?? 0) + name.length);
    }
    return [...found];
  }

  return {
    add(name, id) {
      const key = fold(name);
      const bearers = ids.get(key);
      if (bearers === undefined) {
        ids.set(key, id);
        fresh.add(key);
        for (const character of key) if (alphabet.size < alphabetSize) alphabet.add(character);
        if (fresh.size >= sortInAt) sortIn();
      } else if (typeof bearers === "string") {
        if (bearers !== id) ids.set(key, new Set([bearers, id]));
      } else {
        bearers.add(id);
      }
    },
    remove(name, id) {
      const key = fold(name);
      const bearers = ids.get(key);
      if (bearers === undefined) return;
      if (typeof bearers !== "string") bearers.delete(id);
      if (typeof bearers === "string" ? bearers !== id : bearers.size > 0) return;
      ids.delete(key);
      if (!fresh.delete(key)) gone += 1;
    },
    idsOf(name) {
      const bearers = ids.get(fold(name)) ?? [];
      return typeof bearers === "string" ? [bearers] : [...bearers];
    },
    containing(typed, most) {
      const wanted = fold(typed);
      if (wanted === "") return [];
      const found = new Set(beginning(wanted, most));
      if (found.size < most) {
        const others = holding(wanted);
        for (const name of others) if (beginsWord(name, wanted)) found.add(name);
        for (const name of others) found.add(name);
      }
      return [...found].slice(0, most);
    },
    near(typed, most) {
      const wanted = fold(typed);
      const found = new Set<string>();
      const allowed = allowedDistance(wanted);
      if (allowed === 0) return [];
      for (const variant of oneSlipAway(wanted, [...alphabet].join("")))
        if (ids.has(variant)) found.add(variant);
      const place = placeOf(wanted);
      const around = sorted.slice(Math.max(0, place - neighbors), place + neighbors);
      for (const name of [...around, ...[...fresh].slice(-neighbors)]) {
        if (found.size >= most) break;
        if (editDistance(wanted, name, allowed) <= allowed && ids.has(name)) found.add(name);
      }
      return [...found].slice(0, most);
    },
    tidy() {
      if (fresh.size > tidyAt || gone > tidyAt || sorted.length === 0) sortIn();
    },
  };
}

function byCodeUnit(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function merge(a: readonly string[], b: readonly string[]): string[] {
  const merged: string[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    const left = a[i];
    const right = b[j];
    if (right === undefined || (left !== undefined && left <= right)) {
      if (left !== undefined && left !== right) merged.push(left);
      i += 1;
    } else {
      merged.push(right);
      j += 1;
    }
  }
  return merged;
}

/** The first of 0…length-1 for which it holds, when it holds for all after; else length. */
function firstWhere(length: number, holds: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function beginsWord(name: string, typed: string): boolean {
  const at = name.indexOf(typed);
  return at === 0 || (at > 0 && "-_. /".includes(name.charAt(at - 1)));
}

/** How many typos are allowed. */
function allowedDistance(typed: string): number {
  if (typed.length < shortestToGuess) return 0;
  return typed.length < 6 ? 1 : 2;
}

/**
 * Everything one typo away: a character too many, missing, wrong, or two swapped (https://norvig.com/spell-correct.html).
 * The cost doesn't depend on the number of names.
 */
export function* oneSlipAway(typed: string, alphabet: string): Generator<string> {
  if (typed.length < shortestToGuess || typed.length > longestToGuess) return;
  for (let at = 0; at <= typed.length; at++) {
    const before = typed.slice(0, at);
    const rest = typed.slice(at);
    const after = rest.slice(1);
    if (rest !== "") yield before + after;
    if (after !== "") yield before + after.charAt(0) + rest.charAt(0) + after.slice(1);
    for (const character of alphabet) {
      if (rest !== "") yield before + character + after;
      yield before + character + rest;
    }
  }
}
