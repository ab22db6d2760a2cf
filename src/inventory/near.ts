/** Names so short that one slip makes them something else get no guesses at all. */
const shortest = 3;
/** Beyond this the variants of a name are too many to try; such a name is pasted, not typed. */
const longest = 64;

/** How many slips may lie between what was typed and what was meant. */
export function slipsAllowed(typed: string): number {
  if (typed.length < shortest) return 0;
  return typed.length < 6 ? 1 : 2;
}

/**
 * Everything one slip away: a character too many, missing, wrong, or two swapped (Norvig's way to correct spelling,
 * https://norvig.com/spell-correct.html). Asking a set for each costs the same however many names there are.
 */
export function* oneSlipAway(typed: string, alphabet: string): Generator<string> {
  if (typed.length < shortest || typed.length > longest) return;
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

/** Slips between two names (Levenshtein, a swap counts as one), or `most + 1` as soon as it is sure to be more. */
export function slipsBetween(one: string, other: string, most: number): number {
  if (Math.abs(one.length - other.length) > most) return most + 1;
  // What both begin and end with costs nothing; of names that stand together, that is nearly all
  const shorter = Math.min(one.length, other.length);
  let head = 0;
  while (head < shorter && one.charCodeAt(head) === other.charCodeAt(head)) head += 1;
  let tail = 0;
  const left = shorter - head;
  while (
    tail < left &&
    one.charCodeAt(one.length - 1 - tail) === other.charCodeAt(other.length - 1 - tail)
  )
    tail += 1;
  const a = one.slice(head, one.length - tail);
  const b = other.slice(head, other.length - tail);
  let older: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    let least = i;
    for (let j = 1; j <= b.length; j++) {
      const isSame = a.charCodeAt(i - 1) === b.charCodeAt(j - 1);
      let cost = Math.min(
        (above[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (above[j - 1] ?? 0) + (isSame ? 0 : 1),
      );
      const isSwap =
        i > 1 &&
        j > 1 &&
        a.charCodeAt(i - 1) === b.charCodeAt(j - 2) &&
        a.charCodeAt(i - 2) === b.charCodeAt(j - 1);
      if (isSwap) cost = Math.min(cost, (older[j - 2] ?? 0) + 1);
      row.push(cost);
      if (cost < least) least = cost;
    }
    if (least > most) return most + 1;
    older = above;
    above = row;
  }
  return Math.min(above[b.length] ?? Infinity, most + 1);
}
