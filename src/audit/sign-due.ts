import { messageOf } from "../errors.ts";
import type { Seal } from "./chain.ts";
import { type SigningKey, signedText } from "./anchors.ts";
import type { Trail } from "./trail.ts";

const everyRecords = 100;
const everyMs = 3600_000;
/** A crash leaves a batch unsigned. Older seals stay unsigned: this process can't vouch for them. */
const signBack = 1000;

/** The last checkpoint, as far as this process knows. */
export interface Signed {
  seq: number;
  /** Redis time (ms). */
  at: number;
}

/**
 * Signs each hundredth seal, and the head an hour after the last signature, including what a dead sealer left unsigned.
 * Resolves with the last checkpoint, to be given again: others only add to it.
 */
export async function signDue(
  trail: Trail,
  key: SigningKey,
  head: Seal,
  now: number,
  known?: Signed,
): Promise<Signed | undefined> {
  const isCurrent =
    known !== undefined &&
    Math.floor(known.seq / everyRecords) === Math.floor(head.seq / everyRecords) &&
    now - known.at < everyMs;
  if (isCurrent) return known;
  const last = await trail.lastCheckpoint();
  const signedTo = last?.seq ?? 0;
  const due: Seal[] = [];
  const from = Math.max(signedTo, head.seq - signBack, 0);
  const first = (Math.floor(from / everyRecords) + 1) * everyRecords;
  for (let seq = first; seq <= head.seq; seq += everyRecords) {
    const seal = await trail.seal(seq);
    if (seal) due.push(seal);
  }
  const isHourly = head.seq > signedTo && now - (last?.at ?? 0) >= everyMs;
  if (isHourly && due.at(-1)?.seq !== head.seq) due.push(head);
  for (const seal of due) await sign(trail, key, seal, now);
  const newest = due.at(-1);
  return newest ? { seq: newest.seq, at: now } : last;
}

async function sign(trail: Trail, key: SigningKey, seal: Seal, at: number): Promise<void> {
  const { seq, hash } = seal;
  const signature = key.sign(signedText(trail.key.namespace, { seq, hash, at }));
  const fields = ["hash", hash, "at", String(at), "publicKey", key.publicKey];
  try {
    await trail.redis.xadd(trail.names.checkpoints, `${seq}-0`, ...fields, "signature", signature);
  } catch (error) {
    // signed already, by a sealer that lost its lease meanwhile
    if (!messageOf(error).includes("equal or smaller")) throw error;
  }
}
