/** A step of a request's history. */
export interface HistoryStep {
  /** Redis time (ms). */
  at: number;
  state: string;
  why: string;
  /** The person who did it, if one did. */
  actor?: string | undefined;
}

/** One line of the request's hash for a step (`keepStep` adds it). */
export const stepText = ({ state, why, actor }: Omit<HistoryStep, "at">): string =>
  JSON.stringify(actor === undefined ? [state, why] : [state, why, actor]);

/** Reads the history out of a request's hash. */
export function parseSteps({
  createdAt,
  history,
}: {
  createdAt: number;
  history: string;
}): HistoryStep[] {
  return history
    .split("\n")
    .slice(0, -1)
    .map((row) => {
      const at = row.indexOf(" ");
      const [state, why, actor] = JSON.parse(row.slice(at + 1)) as [string, string, string?];
      const afterMs = Number(row.slice(0, at));
      return { at: createdAt + afterMs, state, why, ...(actor === undefined ? {} : { actor }) };
    });
}
