import { createHash } from "node:crypto";

/**
 * The chain. A record is sealed by two hashes, both over plain text, so that `printf … | sha256sum` can check them:
 *
 *     payload = SHA-256(salt record)
 *     hash    = SHA-256(0x00 hash-of-the-seal-before ' ' payload ' ' seq ' ' id ' ' at)
 *
 * The chain covers the payload's hash, not the record: when record and salt are erased, it still verifies, and without the
 * salt nobody can guess what stood there. The salt is as long as a hash is wide enough against guessing: 128 bits.
 */
export interface Seal {
  /** 1, 2, 3, …; a number is left out only where records were lost, and then a record says so. */
  seq: number;
  /** The record's id in the stream, `milliseconds-counter`. */
  id: string;
  /** Redis time of the record, ms, as the text that was hashed. */
  at: string;
  payload: string;
  hash: string;
}

/** A record as it stands in the stream. `record` is JSON; its exact text is what was sealed. */
export interface Entry {
  id: string;
  at: string;
  record: string;
}

/** What the first seal follows. */
export const genesis = "0".repeat(64);

const saltPattern = /^[0-9a-f]{32}$/;
const hashPattern = /^[0-9a-f]{64}$/;

export function isStreamId(text: string): boolean {
  return /^\d{1,15}-\d{1,15}$/.test(text);
}

export function isHash(text: string): boolean {
  return hashPattern.test(text);
}

export function payloadOf(salt: string, record: string): string {
  return createHash("sha256").update(salt).update(record).digest("hex");
}

export function hashOf(before: string, seal: Omit<Seal, "hash">): string {
  const { payload, seq, id, at } = seal;
  return createHash("sha256").update(`\0${before} ${payload} ${seq} ${id} ${at}`).digest("hex");
}

/** Whether the record is the one that was sealed. */
export function isSealedBy(entry: Entry, seal: Seal, salt: string | undefined): boolean {
  if (salt === undefined || !saltPattern.test(salt)) return false;
  return entry.at === seal.at && payloadOf(salt, entry.record) === seal.payload;
}

/** Order of two stream ids: negative when `a` is the older. */
export function compareIds(a: string, b: string): number {
  const [aMs = "0", aCount = "0"] = a.split("-");
  const [bMs = "0", bCount = "0"] = b.split("-");
  return Number(aMs) - Number(bMs) || Number(aCount) - Number(bCount);
}
