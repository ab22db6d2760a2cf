/**
 * - `changed`   the record (or its time) is not the one that was sealed
 * - `swapped`   it is the one that was sealed under another number
 * - `removed`   the record or its seal is not there any more, and no record says that it was erased
 * - `inserted`  a record between sealed ones that nobody sealed
 * - `seal`      the seal itself was changed: it doesn't follow from the one before
 * - `replaced`  the chain is whole, but it isn't the one that was anchored or signed: it was written anew
 * - `truncated` it ends before a head that was anchored, signed or numbered
 * - `gap`       records were lost, and the sealer noticed and said so in the chain
 * - `signature` a checkpoint's signature is not right
 * - `file`      an export is unreadable, or something beside its records was changed
 */
export type ProblemKind =
  | "changed"
  | "swapped"
  | "removed"
  | "inserted"
  | "seal"
  | "replaced"
  | "truncated"
  | "gap"
  | "signature"
  | "file";

/** The first record that is bad. */
export interface Problem {
  seq: number;
  /** Its id in the stream, where it is known. */
  id?: string;
  kind: ProblemKind;
  /** One sentence for people. */
  says: string;
}

/**
 * `intact`; `broken`, with the first problem; `unsure` when there is nothing to verify, or when so much waits to be sealed
 * that the chain says little about it.
 */
export interface Verdict {
  is: "intact" | "broken" | "unsure";
  problem?: Problem;
  /** How many sealed records were walked through. */
  sealed: number;
  head?: { seq: number; hash: string };
  /** Records whose content was erased on purpose, or is not part of a filtered export. */
  erased: number;
  withheld: number;
  /** Records that are not sealed yet, and for how long the oldest has waited (ms). */
  unsealed: { count: number; oldestMs: number };
  /** How many heads kept elsewhere were compared. */
  anchors: number;
  /** The last seal covered by a right signature, and the keys that signed (fingerprints). */
  signed: { seq: number; keys: readonly string[] };
}

/** How long records may wait before "unsealed" means that nobody seals (ms). */
const waitsTooLongMs = 60_000;

export function judgeChain(found: Omit<Verdict, "is">): Verdict {
  if (found.problem) return { is: "broken", ...found };
  const isEmpty = found.sealed === 0;
  return {
    is: isEmpty || found.unsealed.oldestMs > waitsTooLongMs ? "unsure" : "intact",
    ...found,
  };
}
