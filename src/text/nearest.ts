import { fold } from "./fold.ts";

/**
 * The known word that was probably meant: one within a third of its length in edits, or the only
 * one that begins with `word`.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  return allNearest(word, known)[0];
}

/** All known words that are equally near: `rstart` is as near to `start` as to `restart`. */
export function allNearest(word: string, known: readonly string[]): string[] {
  const typed = fold(word).slice(0, 60);
  if (typed === "") return [];
  let best: string[] = [];
  let fewest = Infinity;
  for (const candidate of known) {
    const allowed = Math.max(1, Math.floor(Math.max(typed.length, candidate.length) / 3));
    const most = Math.min(allowed, fewest);
    const edits = editDistance(typed, fold(candidate), most);
    if (edits > most) continue;
    best = edits < fewest ? [candidate] : [...best, candidate];
    fewest = edits;
  }
  if (best.length > 0 || typed.length < 2) return best;
  const beginning = known.filter((candidate) => fold(candidate).startsWith(typed));
  return beginning.length === 1 ? beginning : [];
}

/**
 * Damerau-Levenshtein distance (optimal string alignment). Returns `most + 1` as soon as the
 * distance must exceed `most`.
 */
export function editDistance(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) return most + 1;
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
