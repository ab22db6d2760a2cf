import { fold } from "../text/glob.ts";
import { editDistance } from "../text/nearest.ts";
import { firstOf } from "./status-words.ts";

/** Names compared by edit distance; comparing 100,000 would block the process. */
const compared = 200;
/** Of the names that people give. Other characters are only guessed among the names that are compared. */
const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789-_. ";
/** Shorter names get no guesses: one typo makes them something else. */
const shortestToGuess = 3;
/** Longer names have too many variants to try. */
const longestToGuess = 64;

/** IDs by name, ignoring case. `containing` and `near` only suggest. */
export function createNames() {
  const ids = new Map<string, Set<string>>();

  return {
    add(name: string, id: string): void {
      const key = fold(name);
      const bearers = ids.get(key);
      if (bearers) bearers.add(id);
      else ids.set(key, new Set([id]));
    },
    remove(name: string, id: string): void {
      const key = fold(name);
      const bearers = ids.get(key);
      bearers?.delete(id);
      if (bearers?.size === 0) ids.delete(key);
    },
    idsOf: (name: string): Iterable<string> => ids.get(fold(name)) ?? [],

    /** Folded names that begin with what was typed, then those with a word that does, then the others that contain it. */
    containing(typed: string, most: number): string[] {
      const wanted = fold(typed);
      if (wanted === "") return [];
      const [names, words, others]: [string[], string[], string[]] = [[], [], []];
      for (const name of ids.keys()) {
        const at = name.indexOf(wanted);
        if (at === 0) names.push(name);
        else if (at > 0) ("-_. /".includes(name.charAt(at - 1)) ? words : others).push(name);
      }
      const found: string[] = [];
      for (const some of [names, words, others])
        if (found.length < most) found.push(...firstOf(some, most - found.length, byCodeUnit));
      return found;
    },

    /** Folded names that are one typo away, or two: the latter among those with the longest common beginning. */
    near(typed: string, most: number): string[] {
      const wanted = fold(typed);
      if (wanted.length < shortestToGuess) return [];
      const found = new Set<string>();
      for (const variant of oneSlipAway(wanted, alphabet)) if (ids.has(variant)) found.add(variant);
      const allowed = wanted.length < 6 ? 1 : 2;
      const byBeginning: string[][] = Array.from({ length: wanted.length + 1 }, () => []);
      for (const name of ids.keys()) {
        const alike = byBeginning[commonBeginning(name, wanted)];
        if (alike && alike.length < compared) alike.push(name);
      }
      for (const name of byBeginning.toReversed().flat().slice(0, compared))
        if (editDistance(wanted, name, allowed) <= allowed) found.add(name);
      return [...found].slice(0, most);
    },
  };
}

function byCodeUnit(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function commonBeginning(a: string, b: string): number {
  let length = 0;
  while (length < b.length && a.charCodeAt(length) === b.charCodeAt(length)) length += 1;
  return length;
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
