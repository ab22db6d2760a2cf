/** A step of a request's history. */
export interface Step {
  /** Redis, ms. */
  at: number;
  state: string;
  why: string;
  /** The person who did it, if one did. */
  actor?: string | undefined;
}

/** As the request's hash keeps it, a line for each (`keepStep`). */
export const stepText = ({ state, why, actor }: Omit<Step, "at">): string =>
  JSON.stringify(actor === undefined ? [state, why] : [state, why, actor]);

/** The history in a request's hash, and `beside`, the list that processes of an older version keep. */
export function parseSteps(
  { createdAt, history }: { createdAt: number; history: string },
  beside: readonly string[],
): Step[] {
  const lines = history.split("\n").slice(0, -1).map(cut);
  const steps = lines.map(([afterMs, step]): Step => {
    const [state, why, actor] = step as [string, string, string?];
    return { at: createdAt + afterMs, state, why, ...(actor === undefined ? {} : { actor }) };
  });
  const older = beside.map(cut).map(([at, step]) => ({ at, ...(step as Omit<Step, "at">) }));
  return [...older, ...steps].toSorted((a, b) => a.at - b.at);
}

function cut(row: string): [ms: number, step: unknown] {
  const at = row.indexOf(" ");
  return [Number(row.slice(0, at)), JSON.parse(row.slice(at + 1))];
}
