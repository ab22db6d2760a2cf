import { type Anchor, type Checkpoint, fingerprint, isSignedRightly } from "./anchors.ts";
import {
  type Entry,
  genesis,
  hashOf,
  isHash,
  isSealedBy,
  type Loss,
  readMarker,
  type RecordedMarker,
  type Seal,
} from "./chain.ts";

type ProblemKind =
  | "changed" // the record (or its time) is not what was sealed
  | "swapped" // it was sealed under another number
  | "removed" // the record or its seal is missing, and no record says that it was erased
  | "inserted" // an unsealed record between sealed ones
  | "seal" // the seal doesn't follow from the one before
  | "replaced" // the chain is whole, but not the one that was anchored or signed
  | "truncated" // it ends before a head that was anchored, signed, or numbered
  | "gap" // records were lost, and the sealer recorded it
  | "signature" // a checkpoint's signature is wrong
  | "file"; // an export is unreadable, or something beside its records was changed

/** The first record that is bad. */
export interface Problem {
  seq: number;
  /** Its ID in the stream, where known. */
  id?: string;
  kind: ProblemKind;
  /** One sentence for people. */
  says: string;
  /** What is gone, where a person may record it and the rest still verifies. */
  loss?: Loss;
}

/** A loss that someone recorded. */
export interface RecordedLoss extends Loss {
  who: string;
  why: string;
}

/** `unsure`: nothing to verify, or too much unsealed for the chain to say much. */
export interface Verdict {
  is: "intact" | "broken" | "unsure";
  problem?: Problem;
  /** All that were seen, that one first. */
  problems: readonly Problem[];
  /** Losses that someone recorded: they break nothing, and are never left unsaid. */
  recorded: readonly RecordedLoss[];
  /** Sealed records verified. */
  sealed: number;
  head?: { seq: number; hash: string };
  /** Records erased on purpose, or omitted by a filter. */
  erased: number;
  withheld: number;
  /** Records not sealed yet, and how long the oldest has waited (ms). */
  unsealed: { count: number; oldestMs: number };
  /** Heads kept elsewhere that match. */
  anchors: number;
  /** The last seal with a valid signature, and the fingerprints of the keys. */
  signed: { seq: number; keys: readonly string[] };
}

/** Older unsealed records mean that no process is sealing (ms). */
const waitsTooLongMs = 60_000;

export function judgeChain(found: Omit<Verdict, "is">): Verdict {
  if (found.problem) return { is: "broken", ...found };
  const isUnsure = found.sealed === 0 || found.unsealed.oldestMs > waitsTooLongMs;
  return { is: isUnsure ? "unsure" : "intact", ...found };
}

/** One place in the chain. */
export interface Step {
  seal: Seal;
  entry?: Entry | undefined;
  salt?: string | undefined;
  /** Omitted from a filtered export; its seal stays. */
  isWithheld?: boolean;
}

export type Walk = ReturnType<typeof createWalk>;

/**
 * Walks along the chain. Pure; memory grows only with erased records. `before`: the seal before the first step.
 * `trustedKeys`: base64; without it every key's signature counts.
 */
export function createWalk(options: {
  chain: string;
  before?: { seq: number; hash: string };
  anchors: readonly Anchor[];
  checkpoints: readonly Checkpoint[];
  trustedKeys?: readonly string[];
}) {
  const { chain, trustedKeys } = options;
  const begin = options.before ?? { seq: 0, hash: genesis };
  const problems: Problem[] = [];
  const missing = new Map<number, string>();
  const markers: RecordedMarker[] = [];
  const keys = new Set<string>();
  const points = new Map<number, (Anchor | Checkpoint)[]>();
  for (const point of [...options.anchors, ...options.checkpoints]) {
    if (point.seq > begin.seq) points.set(point.seq, [...(points.get(point.seq) ?? []), point]);
  }
  let { seq, hash } = begin;
  let sealed = 0;
  let erased = 0;
  let withheld = 0;
  let compared = 0;
  let comparedTo = begin.seq;
  let signedTo = 0;
  let isStopped = false;

  /** For a problem that only the caller can see. */
  function stop(problem: Problem): void {
    problems.push(problem);
    isStopped = true;
  }

  /** After the first break nothing can be judged; records are read only for what they explain. */
  function step({ seal, entry, salt, isWithheld = false }: Step): void {
    if (isStopped) {
      if (entry) explain(entry.record);
      return;
    }
    const expected = seq + 1;
    if (seal.seq < expected) {
      return stop(bad("inserted", seal.seq, `seal ${seal.seq} comes after seal ${seq}`, seal.id));
    }
    const follows = isHash(seal.payload) && hashOf(hash, seal) === seal.hash;
    if (seal.seq > expected) {
      // the sealer skips numbers only after a loss, and its next seal then follows the last one left
      if (!follows) return stop(bad("removed", expected, "the seal is missing"));
      problems.push(lost("gap", { from: expected, to: seal.seq - 1 }, "were lost"));
    } else if (!follows) {
      return stop(bad("seal", seal.seq, "the seal doesn't follow from the one before", seal.id));
    }
    seq = seal.seq;
    hash = seal.hash;
    meetsPoints(seal);
    if (isStopped) return;
    sealed++;
    content(seal, entry, salt, isWithheld);
  }

  function content(
    seal: Seal,
    entry: Entry | undefined,
    salt: string | undefined,
    isWithheld: boolean,
  ): void {
    if (!entry) {
      if (isWithheld) withheld++;
      else missing.set(seal.seq, seal.id);
    } else if (!isSealedBy(entry, seal, salt)) {
      stop(bad("changed", seal.seq, "the record is not the one that was sealed", seal.id));
    } else {
      explain(entry.record);
    }
  }

  /** Compares with heads known from elsewhere. */
  function meetsPoints(seal: Seal): void {
    for (const point of points.get(seal.seq) ?? []) {
      const isSigned = "signature" in point;
      if (isSigned && !isSignedRightly(chain, point)) {
        return stop(bad("signature", seal.seq, "the checkpoint's signature is wrong", seal.id));
      }
      const differs = point.hash !== seal.hash;
      if (differs && isSigned) {
        return stop(bad("replaced", seal.seq, "the seal is not the one that was signed", seal.id));
      }
      if (differs) {
        // What follows is a chain all the same, and may say who knows of it
        const loss = { from: comparedTo + 1, to: seal.seq, head: headOf(point) };
        const says = "the seal is not the one that was anchored elsewhere";
        problems.push({ ...bad("replaced", seal.seq, says, seal.id), loss });
      } else if (!isSigned) {
        compared++;
        comparedTo = seal.seq;
      } else if (!trustedKeys || trustedKeys.includes(point.publicKey)) {
        signedTo = seal.seq;
        keys.add(fingerprint(point.publicKey));
      }
    }
  }

  function ends(most: number): Problem {
    return bad("truncated", seq + 1, `the chain ends here, but it once reached record ${most}`);
  }

  function explain(record: string): void {
    const marker = readMarker(record);
    if (marker?.what === "audit-erased") {
      for (const gone of marker.erased) {
        if (missing.get(gone.seq) !== gone.id) continue;
        missing.delete(gone.seq);
        erased++;
      }
    }
    if (marker?.what === "audit-gap-recorded") markers.push(marker);
    if (marker?.what !== "audit-gap" || marker.after < begin.seq) return;
    const from = marker.after + 1;
    const what = marker.found === "cut" ? "were lost" : "were replaced";
    const loss = { from, to: Math.max(from, marker.next - 1) };
    problems.unshift(lost("gap", loss, `${what}, according to the trail itself`));
  }

  return {
    step,
    stop,
    /** A record after the last seal: it may explain something too. */
    tail: explain,
    get isStopped() {
      return isStopped;
    },
    /** `given`: the highest number ever given; `gone`: ID of a record that disappeared before it was sealed. */
    end(given: number, gone?: string): Omit<Verdict, "is" | "unsealed"> {
      for (const [at, id] of missing) {
        problems.push(
          bad("removed", at, "the record is missing, and no record says that it was erased", id),
        );
      }
      const beyond = isStopped ? [] : [...points.values()].flat().filter((one) => one.seq > seq);
      for (const point of beyond.toSorted((a, b) => b.seq - a.seq)) {
        const loss = { from: seq + 1, to: point.seq, head: headOf(point) };
        problems.push({ ...ends(point.seq), ...("signature" in point ? {} : { loss }) });
      }
      if (!isStopped && given > seq) problems.push(ends(given));
      if (gone && beyond.length === 0 && given <= seq) {
        const says = "a record was removed before it was sealed";
        problems.push(bad("removed", seq + 1, says, gone));
      }
      const recorded = new Map<string, RecordedLoss>();
      const left = problems.filter(({ loss }) => {
        const by = loss && markers.find((one) => one.lost.some((known) => isSame(known, loss)));
        if (!by) return true;
        const { who, why } = by;
        recorded.set(loss.head ?? range(loss.from, loss.to), { ...loss, who, why });
        return false;
      });
      const found = left.toSorted((a, b) => a.seq - b.seq);
      const [problem] = found;
      return {
        ...(problem ? { problem } : {}),
        problems: found,
        recorded: [...recorded.values()],
        sealed,
        ...(seq > 0 ? { head: { seq, hash } } : {}),
        erased,
        withheld,
        anchors: compared,
        signed: { seq: signedTo, keys: [...keys] },
      };
    },
  };
}

/** A head is told by its hash: where the chain went on, it is missing elsewhere than at its end. */
function isSame(known: Loss, loss: Loss): boolean {
  if (loss.head !== undefined) return known.head === loss.head;
  return known.from === loss.from && known.to === loss.to;
}

function headOf({ seq, hash }: Pick<Anchor, "seq" | "hash">): string {
  return `${seq}:${hash}`;
}

function lost(kind: ProblemKind, loss: Loss, what: string): Problem {
  return { ...bad(kind, loss.from, `records ${range(loss.from, loss.to)} ${what}`), loss };
}

export function range(from: number, to: number): string {
  return from >= to ? String(from) : `${from} to ${to}`;
}

function bad(kind: ProblemKind, seq: number, says: string, id?: string): Problem {
  return { seq, kind, says, ...(id ? { id } : {}) };
}
