import type { Keys, RedisClient } from "../redis/redis.ts";
import { fingerprint, isSignature } from "../text/signed-text.ts";
import type { Anchor } from "./anchors.ts";
import { signedText } from "./signing-key.ts";
import {
  type Checkpoint,
  type Cut,
  type TrailEntry,
  type Loss,
  type RecordedMarker,
  type Seal,
  type TrailStep,
  compareIds,
  createTrail,
  cutText,
  hashOf,
  isHash,
  isSealedBy,
  isStreamId,
  payloadOf,
  readMarker,
  startOf,
} from "./trail.ts";

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
  says: string;
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
  is: "intact" | "broken" | "unsure";
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
export async function verifyAudit(options: {
  redis: RedisClient;
  key: Keys;
  anchors?: readonly Anchor[];
  page?: number;
  onVerified?: OnVerified;
}): Promise<TrailVerdict> {
  const { redis, key, anchors = [] } = options;
  const trail = createTrail(redis, key);
  const [{ given }, lastId, now, cut] = await Promise.all([
    trail.end(),
    trail.lastRecordId(),
    trail.now(),
    trail.cut(),
  ]);
  return await checkWalk(trail.walk(options.page), {
    chain: key.namespace,
    cut,
    anchors,
    checkpoints: await trail.checkpoints(1),
    given: { seq: given, id: lastId },
    now,
    onVerified: options.onVerified,
  });
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
  given: { seq: number; id?: string };
  /** Redis time (ms). */
  now: number;
  /** Called for each seal that follows from the one before and whose record is as it was sealed. */
  onVerified?: OnVerified | undefined;
}

/** `isErased`: the record isn't there any more, or a person was removed from it. */
export type OnVerified = (seal: Seal, isErased: boolean) => void;

/**
 * Follows the chain and finds what is wrong with it. Memory grows only with missing records. After
 * the first break nothing more can be verified; later records are read only for what they explain.
 */
export async function checkWalk(
  pages: AsyncIterable<readonly TrailStep[]> | Iterable<readonly TrailStep[]>,
  known: ExpectedChain,
): Promise<TrailVerdict> {
  const { chain, given, cut } = known;
  const problems: Problem[] = [];
  const missing = new Map<number, string>();
  /** Records from which a person was removed, each until a later record vouches for what is left. */
  const redacted = new Map<number, { id: string; payload: string; isProven: boolean }>();
  const markers: RecordedMarker[] = [];
  const keys = new Set<string>();
  const start = startOf(cut);
  // Heads of archived records stay on disks and in channels. Only the archive has their seals.
  const points: readonly (Anchor | Checkpoint)[] = [...known.anchors, ...known.checkpoints].filter(
    (point) => point.seq >= start.seq,
  );
  const pointsAt = Map.groupBy(points, (point) => point.seq);
  let { seq, hash } = start;
  let sealed = 0;
  let erased = 0;
  let compared = 0;
  let comparedTo = 0;
  let signedTo = 0;
  let oldest: TrailEntry | undefined;
  let waiting = 0;
  let lastId = "0-0";
  let isStopped = false;

  function stop(kind: ProblemKind, at: number, says: string, id?: string): void {
    problems.push(bad(kind, at, says, id));
    isStopped = true;
  }

  /** Checks the signed cut after which the trail begins. */
  function beginAt(begin: Cut): void {
    if (!isSignature(cutText(chain, begin), begin.publicKey, begin.signature))
      return stop("signature", begin.seq, "the signature of what was archived is wrong", begin.id);
    meetsPoints(begin);
  }

  function follow(seal: Seal): void {
    if (oldest) {
      const says = `an unsealed record comes before record ${seal.seq}`;
      return stop("inserted", seal.seq, says, oldest.id);
    }
    const expected = seq + 1;
    if (seal.seq < expected) {
      return stop("inserted", seal.seq, `seal ${seal.seq} comes after seal ${seq}`, seal.id);
    }
    const follows = isHash(seal.payload) && hashOf(hash, seal) === seal.hash;
    if (seal.seq > expected) {
      // The sealer skips numbers only after a loss, and its next seal then follows the last one
      // left.
      if (!follows) return stop("removed", expected, "the seal is missing");
      problems.push(lost("gap", { from: expected, to: seal.seq - 1 }, "were lost"));
    } else if (!follows) {
      return stop("seal", seal.seq, "the seal doesn't follow from the one before", seal.id);
    }
    seq = seal.seq;
    hash = seal.hash;
    meetsPoints(seal);
    if (!isStopped) sealed++;
  }

  /** Compares a seal with the heads known from elsewhere. */
  function meetsPoints(seal: Pick<Seal, "seq" | "hash" | "id">): void {
    for (const point of pointsAt.get(seal.seq) ?? []) {
      const isSigned = "signature" in point;
      if (isSigned && !isSignature(signedText(chain, point), point.publicKey, point.signature)) {
        return stop("signature", seal.seq, "the checkpoint's signature is wrong", seal.id);
      }
      const differs = point.hash !== seal.hash;
      if (differs && isSigned) {
        return stop("replaced", seal.seq, "the seal is not the one that was signed", seal.id);
      }
      if (differs) {
        // The rest is still a chain, and a record in it may confirm the loss.
        const loss = { from: comparedTo + 1, to: seal.seq, head: headOf(point) };
        const says = "the seal is not the one that was anchored elsewhere";
        problems.push({ ...bad("replaced", seal.seq, says, seal.id), loss });
      } else if (isSigned) {
        signedTo = seal.seq;
        keys.add(fingerprint(point.publicKey));
      } else {
        compared++;
        comparedTo = seal.seq;
      }
    }
  }

  /** Checks a seal's record. `nearby` are the other steps of its page. */
  function content(seal: Seal, { entry, salt }: TrailStep, nearby: readonly TrailStep[]): void {
    if (!entry) {
      missing.set(seal.seq, seal.id);
    } else if (entry.salt !== undefined && entry.at === seal.at) {
      redacted.set(seal.seq, { id: seal.id, payload: payloadOf(entry), isProven: false });
      explain(entry.record);
    } else if (isSealedBy(entry, seal, salt)) {
      explain(entry.record);
    } else {
      const home = nearby.find((other) => other.seal !== seal && isAt(entry, other));
      if (home) {
        const says = `the record is the one that was sealed as record ${home.seal?.seq}`;
        return stop("swapped", seal.seq, says, seal.id);
      }
      stop("changed", seal.seq, "the record is not the one that was sealed", seal.id);
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
    if (marker?.what === "audit-redacted") {
      for (const { seq: number, id, payload } of marker.redacted) {
        const left = redacted.get(number);
        // The last one counts: somebody else may have been removed since.
        if (left?.id === id) left.isProven = left.payload === payload;
      }
    }
    if (marker?.what === "audit-gap-recorded") markers.push(marker);
    if (marker?.what !== "audit-gap") return;
    const from = marker.after + 1;
    const fate = marker.found === "cut" ? "were lost" : "were replaced";
    const loss = { from, to: Math.max(from, marker.next - 1) };
    problems.unshift(lost("gap", loss, `${fate}, according to the trail itself`));
  }

  /** Reports what is missing, once everything was read. */
  function end(): void {
    for (const [at, id] of missing) {
      const says = "the record is missing, and no record says that it was erased";
      problems.push(bad("removed", at, says, id));
    }
    for (const [at, { id, isProven }] of redacted) {
      const says = "the record is not the one that was sealed, and no record vouches for it";
      if (!isProven) problems.push(bad("changed", at, says, id));
    }
    const ends = (most: number) =>
      bad("truncated", seq + 1, `the chain ends here, but it once reached record ${most}`);
    const beyond = isStopped ? [] : points.filter((point) => point.seq > seq);
    for (const point of beyond.toSorted((a, b) => b.seq - a.seq)) {
      const loss = { from: seq + 1, to: point.seq, head: headOf(point) };
      problems.push({ ...ends(point.seq), ...("signature" in point ? {} : { loss }) });
    }
    if (!isStopped && given.seq > seq) problems.push(ends(given.seq));
    const isGone = given.id !== undefined && compareIds(given.id, lastId) > 0;
    if (isGone && beyond.length === 0 && given.seq <= seq) {
      const says = "a record was removed before it was sealed";
      problems.push(bad("removed", seq + 1, says, given.id));
    }
  }

  if (cut) beginAt(cut);
  for await (const page of pages) {
    for (const step of page) {
      const { seal, entry } = step;
      if (seal && !isStopped) {
        follow(seal);
        if (!isStopped) content(seal, step, page);
        if (!isStopped) known.onVerified?.(seal, entry === undefined || entry.salt !== undefined);
      } else if (entry) {
        explain(entry.record);
      }
      // A record that no seal follows waits to be sealed.
      oldest = seal ? undefined : (oldest ?? entry);
      waiting = seal ? 0 : waiting + 1;
      const id = entry?.id ?? seal?.id ?? "";
      if (isStreamId(id)) lastId = id;
    }
  }
  end();
  const { left, recorded } = sortOut(problems, markers);
  const [problem] = left;
  const oldestMs = oldest ? Math.max(0, known.now - Number(oldest.at)) : 0;
  const isUnsure = sealed === 0 || oldestMs > waitsTooLongMs;
  return {
    is: problem ? "broken" : isUnsure ? "unsure" : "intact",
    ...(problem ? { problem } : {}),
    problems: left,
    recorded,
    sealed,
    ...(seq > 0 ? { head: { seq, hash } } : {}),
    ...(cut ? { archived: { seq: cut.seq, at: cut.at, key: fingerprint(cut.publicKey) } } : {}),
    erased,
    redacted: redacted.size,
    unsealed: { count: waiting, oldestMs },
    anchors: compared,
    signed: { seq: signedTo, keys: [...keys] },
  };
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

function bad(kind: ProblemKind, seq: number, says: string, id?: string): Problem {
  return { seq, kind, says, ...(id ? { id } : {}) };
}
