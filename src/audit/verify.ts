import type { RedisPlace } from "../redis/redis.ts";
import { fingerprint, isSignature } from "../text/signed-text.ts";
import type { Anchor } from "./anchors.ts";
import { type Checkpoint, checkpointText } from "./checkpoint.ts";
import { type Cut, cutText, startOf } from "./cut.ts";
import {
  type Seal,
  type TrailEntry,
  compareIds,
  hashOf,
  isHash,
  isSealedBy,
  isStreamId,
  payloadOf,
} from "./seal.ts";
import { type Loss, type RecordedMarker, readMarker } from "./markers.ts";
import { type TrailStep, walk } from "./walk.ts";
import { Trail } from "./trail.ts";

type ProblemKind =
  | "changed" // The record (or its time) isn't what was sealed.
  | "swapped" // The record was sealed under another number.
  | "removed" // The record or its seal is missing, and no record says that it was erased.
  | "inserted" // There is an unsealed record between sealed ones.
  | "seal" // The seal doesn't follow from the one before.
  | "replaced" // The chain is consistent, but isn't the one that was anchored or signed.
  | "truncated" // The chain ends before a head that was anchored, signed, or numbered.
  | "gap" // Records were lost, and the sealer recorded that.
  | "signature" // A checkpoint's signature is wrong.
  | "file"; // An export is unreadable, or something outside its records was changed.

/** The first bad record. */
interface Problem {
  seq: number;
  /** The record's ID in the stream, if known. */
  id?: string;
  kind: ProblemKind;
  /** One sentence for people. */
  sentence: string;
  /** The loss, if a person may record it so that the rest verifies again. */
  loss?: Loss;
}

/** A loss that someone recorded. */
export interface RecordedLoss extends Loss {
  who: string;
  why: string;
}

/**
 * The result of verifying the trail. `unsure` means that there is nothing to verify, or records
 * have waited too long to be sealed.
 */
export interface TrailVerdict {
  standing: "intact" | "broken" | "unsure";
  problem?: Problem;
  /** All problems that were found; the first is `problem`. */
  problems: readonly Problem[];
  /** Losses that someone recorded. They don't break the trail, but are always reported. */
  recorded: readonly RecordedLoss[];
  /** The number of sealed records that were verified. */
  sealed: number;
  head?: { seq: number; hash: string };
  /** The number of records that were erased on purpose. */
  erased: number;
  /** The number of records from which a person was removed on purpose. */
  redacted: number;
  /** The last record that was archived and cut off, and the fingerprint of the key that signed it. */
  archived?: { seq: number; at: number; key: string };
  /** The number of records that aren't sealed yet, and how long the oldest has waited (ms). */
  unsealed: { count: number; oldestMs: number };
  /** The number of heads kept elsewhere that match. */
  anchors: number;
  /** The last seal with a valid signature, and the fingerprints of the keys. */
  signed: { seq: number; keys: readonly string[] };
}

/** Unsealed records older than this mean that no process is sealing (ms). */
const waitsTooLongMs = 60_000;

/**
 * Verifies the whole trail and names the first bad record.
 *
 * `anchors` are heads kept outside Redis. Without them, a chain that was cut and continued, or
 * rewritten by someone with write access, looks intact.
 */
export async function verifyAudit(
  options: RedisPlace & {
    anchors?: readonly Anchor[];
    page?: number;
    onVerified?: OnVerified;
  },
): Promise<TrailVerdict> {
  const { redis, key, anchors = [] } = options;
  const trail = new Trail(redis, key);
  const [{ lastSeq }, lastId, now, cut] = await Promise.all([
    trail.end(),
    trail.lastRecordId(),
    trail.now(),
    trail.cut(),
  ]);
  const check = new TrailCheck({
    chain: key.namespace,
    cut,
    anchors,
    checkpoints: await trail.checkpoints(1),
    lastGiven: { seq: lastSeq, id: lastId },
    now,
    onVerified: options.onVerified,
  });
  for await (const page of walk(trail, options.page)) check.visit(page);
  return check.verdict();
}

/** The facts with which the chain is compared. */
interface ExpectedChain {
  /** The namespace, which is part of what is signed. */
  chain: string;
  /** Where the trail begins, if its older records were archived. */
  cut?: Cut | undefined;
  anchors: readonly Anchor[];
  checkpoints: readonly Checkpoint[];
  /** The highest number ever given, and the last ID of a record. */
  lastGiven: { seq: number; id?: string };
  /** Redis time (ms). */
  now: number;
  /** Called for each seal that follows from the one before and whose record is as it was sealed. */
  onVerified?: OnVerified | undefined;
}

/** `isErased`: the record isn't there any more, or a person was removed from it. */
export type OnVerified = (seal: Seal, isErased: boolean) => void;

/**
 * Visits the pages of a walk, follows the chain, and finds what is wrong with it. Memory grows only
 * with missing and redacted records. After the first break nothing more can be verified; later
 * records are read only for what they explain.
 */
export class TrailCheck {
  readonly #expected: ExpectedChain;
  /** Heads known from elsewhere, by number. */
  readonly #points: ReadonlyMap<number, readonly (Anchor | Checkpoint)[]>;
  readonly #problems: Problem[] = [];
  readonly #missing = new Map<number, string>();
  /** Records from which a person was removed, each until a later record vouches for what is left. */
  readonly #redacted = new Map<number, { id: string; payload: string; isProven: boolean }>();
  readonly #lossMarkers: RecordedMarker[] = [];
  readonly #keys = new Set<string>();
  /** The last seal that was verified. */
  #last: Pick<Seal, "seq" | "hash">;
  #sealed = 0;
  #erased = 0;
  #compared = 0;
  #comparedTo = 0;
  #signedTo = 0;
  /** The first of the records that no seal follows, and their number. */
  #oldestWaiting: TrailEntry | undefined;
  #waiting = 0;
  #lastId = "0-0";
  #isStopped = false;

  constructor(expected: ExpectedChain) {
    const { cut, anchors, checkpoints } = expected;
    this.#expected = expected;
    this.#last = startOf(cut);
    // Heads of archived records stay on disks and in channels. Only the archive has their seals.
    const { seq: start } = this.#last;
    const points = [...anchors, ...checkpoints].filter(({ seq }) => seq >= start);
    this.#points = Map.groupBy(points, ({ seq }) => seq);
    if (cut) this.#beginAfter(cut);
  }

  visit(page: readonly TrailStep[]): void {
    for (const step of page) {
      const { seal, entry } = step;
      if (seal && !this.#isStopped) {
        this.#followSeal(seal);
        if (!this.#isStopped) this.#checkRecord(seal, step, page);
        if (!this.#isStopped)
          this.#expected.onVerified?.(seal, entry === undefined || entry.salt !== undefined);
      } else if (entry) {
        this.#explain(entry.record);
      }
      // A record that no seal follows waits to be sealed.
      this.#oldestWaiting = seal ? undefined : (this.#oldestWaiting ?? entry);
      this.#waiting = seal ? 0 : this.#waiting + 1;
      const id = entry?.id ?? seal?.id ?? "";
      if (isStreamId(id)) this.#lastId = id;
    }
  }

  /** The verdict, once every page was visited. */
  verdict(): TrailVerdict {
    this.#problems.push(...this.#unexplained(), ...this.#problemsAtEnd());
    const { left, recorded } = sortOut(this.#problems, this.#lossMarkers);
    const [problem] = left;
    const { now, cut } = this.#expected;
    const oldest = this.#oldestWaiting;
    const oldestMs = oldest ? Math.max(0, now - Number(oldest.at)) : 0;
    const isUnsure = this.#sealed === 0 || oldestMs > waitsTooLongMs;
    return {
      standing: problem ? "broken" : isUnsure ? "unsure" : "intact",
      ...(problem ? { problem } : {}),
      problems: left,
      recorded,
      sealed: this.#sealed,
      ...(this.#last.seq > 0 ? { head: this.#last } : {}),
      ...(cut ? { archived: { seq: cut.seq, at: cut.at, key: fingerprint(cut.publicKey) } } : {}),
      erased: this.#erased,
      redacted: this.#redacted.size,
      unsealed: { count: this.#waiting, oldestMs },
      anchors: this.#compared,
      signed: { seq: this.#signedTo, keys: [...this.#keys] },
    };
  }

  #stop(kind: ProblemKind, at: number, says: string, id?: string): void {
    this.#problems.push(bad(kind, at, says, id));
    this.#isStopped = true;
  }

  /** Checks the signed cut after which the trail begins. */
  #beginAfter(cut: Cut): void {
    if (!isSignature(cutText(this.#expected.chain, cut), cut.publicKey, cut.signature))
      return this.#stop(
        "signature",
        cut.seq,
        "the signature of what was archived is wrong",
        cut.id,
      );
    this.#compareWithPoints(cut);
  }

  #followSeal(seal: Seal): void {
    const { seq, hash } = this.#last;
    if (this.#oldestWaiting) {
      const says = `an unsealed record comes before record ${seal.seq}`;
      return this.#stop("inserted", seal.seq, says, this.#oldestWaiting.id);
    }
    const expected = seq + 1;
    if (seal.seq < expected) {
      return this.#stop("inserted", seal.seq, `seal ${seal.seq} comes after seal ${seq}`, seal.id);
    }
    const follows = isHash(seal.payload) && hashOf(hash, seal) === seal.hash;
    if (seal.seq > expected) {
      // The sealer skips numbers only after a loss, and its next seal then follows the last one
      // left.
      if (!follows) return this.#stop("removed", expected, "the seal is missing");
      this.#problems.push(lost("gap", { from: expected, to: seal.seq - 1 }, "were lost"));
    } else if (!follows) {
      const says = "the seal doesn't follow from the one before";
      return this.#stop("seal", seal.seq, says, seal.id);
    }
    this.#last = { seq: seal.seq, hash: seal.hash };
    this.#compareWithPoints(seal);
    if (!this.#isStopped) this.#sealed++;
  }

  /** Compares a seal with the heads known from elsewhere. */
  #compareWithPoints(seal: Pick<Seal, "seq" | "hash" | "id">): void {
    const { chain } = this.#expected;
    for (const point of this.#points.get(seal.seq) ?? []) {
      const isSigned = "signature" in point;
      if (
        isSigned &&
        !isSignature(checkpointText(chain, point), point.publicKey, point.signature)
      ) {
        return this.#stop("signature", seal.seq, "the checkpoint's signature is wrong", seal.id);
      }
      const differs = point.hash !== seal.hash;
      if (differs && isSigned) {
        return this.#stop("replaced", seal.seq, "the seal is not the one that was signed", seal.id);
      }
      if (differs) {
        // The rest is still a chain, and a record in it may confirm the loss.
        const loss = { from: this.#comparedTo + 1, to: seal.seq, head: headOf(point) };
        const says = "the seal is not the one that was anchored elsewhere";
        this.#problems.push({ ...bad("replaced", seal.seq, says, seal.id), loss });
      } else if (isSigned) {
        this.#signedTo = seal.seq;
        this.#keys.add(fingerprint(point.publicKey));
      } else {
        this.#compared++;
        this.#comparedTo = seal.seq;
      }
    }
  }

  /** Checks a seal's record. `nearby` are the steps of its page. */
  #checkRecord(seal: Seal, { entry, salt }: TrailStep, nearby: readonly TrailStep[]): void {
    if (!entry) {
      this.#missing.set(seal.seq, seal.id);
    } else if (entry.salt !== undefined && entry.at === seal.at) {
      this.#redacted.set(seal.seq, { id: seal.id, payload: payloadOf(entry), isProven: false });
      this.#explain(entry.record);
    } else if (isSealedBy(entry, seal, salt)) {
      this.#explain(entry.record);
    } else {
      const home = nearby.find((other) => other.seal !== seal && isAt(entry, other));
      if (home) {
        const says = `the record is the one that was sealed as record ${home.seal?.seq}`;
        return this.#stop("swapped", seal.seq, says, seal.id);
      }
      this.#stop("changed", seal.seq, "the record is not the one that was sealed", seal.id);
    }
  }

  /** Takes over what a record says about other records. */
  #explain(record: string): void {
    const marker = readMarker(record);
    if (marker?.what === "audit-erased") {
      for (const gone of marker.erased) {
        if (this.#missing.get(gone.seq) !== gone.id) continue;
        this.#missing.delete(gone.seq);
        this.#erased++;
      }
    }
    if (marker?.what === "audit-redacted") {
      for (const { seq, id, payload } of marker.redacted) {
        const left = this.#redacted.get(seq);
        // The last one counts: somebody else may have been removed since.
        if (left?.id === id) left.isProven = left.payload === payload;
      }
    }
    if (marker?.what === "audit-gap-recorded") this.#lossMarkers.push(marker);
    if (marker?.what !== "audit-gap") return;
    const from = marker.after + 1;
    const fate = marker.found === "cut" ? "were lost" : "were replaced";
    const loss = { from, to: Math.max(from, marker.next - 1) };
    this.#problems.unshift(lost("gap", loss, `${fate}, according to the trail itself`));
  }

  /** Records that are missing or changed, and that no later record explains. */
  #unexplained(): readonly Problem[] {
    const missing = [...this.#missing].map(([seq, id]) =>
      bad("removed", seq, "the record is missing, and no record says that it was erased", id),
    );
    const changed = [...this.#redacted].flatMap(([seq, { id, isProven }]) => {
      const says = "the record is not the one that was sealed, and no record vouches for it";
      return isProven ? [] : [bad("changed", seq, says, id)];
    });
    return [...missing, ...changed];
  }

  /** Problems of records and seals that are missing after the last seal. */
  #problemsAtEnd(): readonly Problem[] {
    const { seq } = this.#last;
    const { lastGiven } = this.#expected;
    const problems: Problem[] = [];
    const endsBefore = (most: number) =>
      bad("truncated", seq + 1, `the chain ends here, but it once reached record ${most}`);
    const beyond = this.#isStopped
      ? []
      : [...this.#points.values()].flat().filter((point) => point.seq > seq);
    for (const point of beyond.toSorted((a, b) => b.seq - a.seq)) {
      const loss = { from: seq + 1, to: point.seq, head: headOf(point) };
      problems.push({ ...endsBefore(point.seq), ...("signature" in point ? {} : { loss }) });
    }
    if (!this.#isStopped && lastGiven.seq > seq) problems.push(endsBefore(lastGiven.seq));
    const isGone = lastGiven.id !== undefined && compareIds(lastGiven.id, this.#lastId) > 0;
    if (isGone && beyond.length === 0 && lastGiven.seq <= seq) {
      const says = "a record was removed before it was sealed";
      problems.push(bad("removed", seq + 1, says, lastGiven.id));
    }
    return problems;
  }
}

/** Whether the record was sealed in this place. */
function isAt(entry: TrailEntry, { seal, salt }: TrailStep): boolean {
  return seal !== undefined && isSealedBy({ ...entry, at: seal.at }, seal, salt);
}

/** The problems in order, without the losses that someone recorded. */
function sortOut(problems: readonly Problem[], markers: readonly RecordedMarker[]) {
  const recorded = new Map<string, RecordedLoss>();
  const left = problems.filter(({ loss }) => {
    const recording =
      loss && markers.find((marker) => marker.lost.some((known) => isSame(known, loss)));
    if (!recording) return true;
    const { who, why } = recording;
    recorded.set(loss.head ?? range(loss.from, loss.to), { ...loss, who, why });
    return false;
  });
  return { left: left.toSorted((a, b) => a.seq - b.seq), recorded: [...recorded.values()] };
}

/**
 * A lost head is identified by its hash, because in a chain that went on, it isn't missing at the
 * end.
 */
function isSame(known: Loss, loss: Loss): boolean {
  if (loss.head !== undefined) return known.head === loss.head;
  return known.from === loss.from && known.to === loss.to;
}

function headOf({ seq, hash }: Pick<Anchor, "seq" | "hash">): string {
  return `${seq}:${hash}`;
}

function lost(kind: ProblemKind, loss: Loss, fate: string): Problem {
  return { ...bad(kind, loss.from, `records ${range(loss.from, loss.to)} ${fate}`), loss };
}

export function range(from: number, to: number): string {
  return from >= to ? String(from) : `${from} to ${to}`;
}

function bad(kind: ProblemKind, seq: number, sentence: string, id?: string): Problem {
  return { seq, kind, sentence, ...(id ? { id } : {}) };
}
