import type { Anchor } from "./anchors.ts";
import { type Entry, genesis, hashOf, isHash, isSealedBy, type Seal } from "./chain.ts";
import { type Checkpoint, fingerprint, isSignedRightly } from "./checkpoint.ts";
import { readMarker } from "./markers.ts";
import type { Problem, ProblemKind, Verdict } from "./verdict.ts";

/** One place in the chain with what was found there. */
export interface Step {
  seal: Seal;
  entry?: Entry | undefined;
  salt?: string | undefined;
  /** A filtered export leaves records out; their seals stay. */
  isWithheld?: boolean;
}

/** A walk along the chain from one end to the other. Pure, and as flat as the number of erased records allows. */
export interface Walk {
  /** Behind the first break nothing can be judged any more; records are read on only for what they explain. */
  step(step: Step): void;
  /** A problem that only the caller can see. */
  stop(problem: Problem): void;
  /** A record behind the last seal: what it says about the chain counts too. */
  tail(record: string): void;
  /** `given`: the highest number that was ever given; `gone`: id of a record that went away before it was sealed. */
  end(given: number, gone?: string): Found;
  readonly isStopped: boolean;
}

export type Found = Pick<
  Verdict,
  "problem" | "sealed" | "head" | "erased" | "withheld" | "anchors" | "signed"
>;

/** `before` is the seal that the walk begins behind. `trustedKeys`: base64; without it every key's signature counts. */
export function createWalk(options: {
  chain: string;
  before?: { seq: number; hash: string };
  anchors: readonly Anchor[];
  checkpoints: readonly Checkpoint[];
  trustedKeys?: readonly string[];
}): Walk {
  const { chain, trustedKeys } = options;
  const begin = options.before ?? { seq: 0, hash: genesis };
  const problems: Problem[] = [];
  const missing = new Map<number, string>();
  const keys = new Set<string>();
  const points = new Map<number, (Anchor | Checkpoint)[]>();
  for (const point of [...options.anchors, ...options.checkpoints]) {
    if (point.seq > begin.seq) points.set(point.seq, [...(points.get(point.seq) ?? []), point]);
  }
  const furthest = Math.max(0, ...points.keys());
  let { seq, hash } = begin;
  let sealed = 0;
  let erased = 0;
  let withheld = 0;
  let compared = 0;
  let signedTo = 0;
  let isStopped = false;

  function stop(problem: Problem): void {
    problems.push(problem);
    isStopped = true;
  }

  function step({ seal, entry, salt, isWithheld = false }: Step): void {
    if (isStopped) {
      if (entry) explain(entry.record);
      return;
    }
    const expected = seq + 1;
    if (seal.seq < expected) {
      return stop(bad("inserted", seal.seq, `seal ${seal.seq} stands behind seal ${seq}`, seal.id));
    }
    const follows = isHash(seal.payload) && hashOf(hash, seal) === seal.hash;
    if (seal.seq > expected) {
      // the sealer leaves numbers out only after a loss, and then its next seal follows the last one that is left
      if (!follows) return stop(bad("removed", expected, "the seal is missing"));
      problems.push(bad("gap", expected, `records ${range(expected, seal.seq - 1)} were lost`));
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

  /** Heads known from elsewhere, at this number. */
  function meetsPoints(seal: Seal): void {
    for (const point of points.get(seal.seq) ?? []) {
      const isSigned = "signature" in point;
      if (isSigned && !isSignedRightly(chain, point)) {
        return stop(bad("signature", seal.seq, "the checkpoint's signature is wrong", seal.id));
      }
      if (point.hash !== seal.hash) {
        const where = isSigned ? "signed" : "written down elsewhere";
        return stop(
          bad("replaced", seal.seq, `the seal is not the one that was ${where}`, seal.id),
        );
      }
      if (!isSigned) compared++;
      else if (!trustedKeys || trustedKeys.includes(point.publicKey)) {
        signedTo = seal.seq;
        keys.add(fingerprint(point.publicKey));
      }
    }
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
    if (marker?.what !== "audit-gap" || marker.after < begin.seq) return;
    const says =
      marker.found === "cut"
        ? `records ${range(marker.after + 1, marker.next - 1)} were lost, as the trail itself says`
        : "the seal was replaced, as the trail itself says";
    problems.unshift(bad("gap", marker.after + 1, says));
  }

  return {
    step,
    stop,
    tail: explain,
    get isStopped() {
      return isStopped;
    },
    end(given, gone) {
      for (const [at, id] of missing) {
        problems.push(
          bad("removed", at, "the record is gone, and nobody said that it was erased", id),
        );
      }
      const most = Math.max(furthest, given);
      if (!isStopped && most > seq) {
        const says = `the chain ends here, but it once reached record ${most}`;
        problems.push(bad("truncated", seq + 1, says));
      } else if (gone) {
        const says = "a record was taken away before it was sealed";
        problems.push(bad("removed", seq + 1, says, gone));
      }
      const [problem] = problems.toSorted((a, b) => a.seq - b.seq);
      return {
        ...(problem ? { problem } : {}),
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

function range(from: number, to: number): string {
  return from >= to ? String(from) : `${from} to ${to}`;
}

function bad(kind: ProblemKind, seq: number, says: string, id?: string): Problem {
  return { seq, kind, says, ...(id ? { id } : {}) };
}
