/** The known word that was probably meant: within a third of its length in edits, or the only one that begins like it. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const typed = word.toLowerCase().slice(0, 60);
  if (typed === "") return undefined;
  let best: string | undefined;
  let fewest = Infinity;
  for (const candidate of known) {
    const edits = distance(typed, candidate.toLowerCase());
    if (
      edits < fewest &&
      edits <= Math.max(1, Math.floor(Math.max(typed.length, candidate.length) / 3))
    ) {
      fewest = edits;
      best = candidate;
    }
  }
  if (best !== undefined || typed.length < 2) return best;
  const beginning = known.filter((candidate) => candidate.toLowerCase().startsWith(typed));
  return beginning.length === 1 ? beginning[0] : undefined;
}

/** Edits (insert, delete, replace, swap of neighbours) between two short words. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let cost = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      const swapped =
        row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) cost = Math.min(cost, (beforeLast[column - 2] ?? 0) + 1);
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length] ?? 0;
}
