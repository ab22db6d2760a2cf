/** A question of a form. */
export interface InputPart {
  kind: "input";
  /** What people answer comes back under this. */
  id: string;
  label: string;
  entry: Entry;
  /** Shown below the input. */
  hint?: string | undefined;
  isOptional?: boolean;
  /** Whether Gatehouse hears of each change, because other inputs depend on it. */
  isWatched?: boolean;
  /** What Slack names when it asks for options or reports a change; the ID unless set. */
  action?: string;
}

/** How a question is answered. */
export type Entry =
  | TextEntry
  | { kind: "choice"; options: readonly string[]; chosen: string | undefined }
  | {
      kind: "search";
      /** Shown until something is chosen. */
      placeholder: string;
      chosen?: { label: string; value: string } | undefined;
    }
  | { kind: "tick"; label: string; isTicked: boolean }
  | { kind: "channel" };

interface TextEntry {
  kind: "text";
  /** The most characters that people may enter. */
  most: number;
  /** The fewest. */
  least?: number;
  /** Whether it has several lines. */
  isLong?: boolean;
  placeholder?: string | undefined;
  /** What it holds at first. */
  initial?: string | undefined;
}

/** Asks for text. */
export const textInput = (
  id: string,
  label: string,
  { hint, isOptional, ...entry }: Omit<TextEntry, "kind"> & Pick<InputPart, "hint" | "isOptional">,
): InputPart => ({
  kind: "input",
  id,
  label,
  entry: { kind: "text", ...entry },
  hint,
  ...(isOptional === undefined ? {} : { isOptional }),
});
