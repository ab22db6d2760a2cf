import { createHash } from "node:crypto";

/**
 * The seal of a record consists of two hashes, both over plain text, so that `printf … | sha256sum`
 * can check them:
 *
 *     payload = SHA-256(salt record)
 *     hash    = SHA-256(0x00 hash-of-the-seal-before ' ' payload ' ' seq ' ' id ' ' at)
 *
 * The chain covers the payload's hash, not the record. So it still verifies when record and salt
 * are erased, and without the 128-bit salt the content can't be guessed.
 */
export interface Seal {
  /** 1, 2, 3, …. A number is skipped only where records were lost, and a record then says so. */
  seq: number;
  /** The record's ID in the stream, `milliseconds-counter`. */
  id: string;
  /** Redis time of the record (ms), as the text that was hashed. */
  at: string;
  payload: string;
  hash: string;
}

/**
 * A record of the stream. `record` is JSON; its exact text was sealed. In a redacted record it is
 * what is left, and `salt` is the salt of that text.
 */
export interface TrailEntry {
  id: string;
  at: string;
  record: string;
  salt?: string;
}

/** The hash that the first seal follows. */
export const genesis = "0".repeat(64);

const saltPattern = /^[0-9a-f]{32}$/;
const hashPattern = /^[0-9a-f]{64}$/;

export function isStreamId(text: string): boolean {
  return /^\d{1,15}-\d{1,15}$/.test(text);
}

export function isHash(text: string): boolean {
  return hashPattern.test(text);
}

export function saltedHash(salt: string, record: string): string {
  return createHash("sha256").update(salt).update(record).digest("hex");
}

/** The salted hash of what is left of a redacted record. */
export const payloadOf = ({ salt = "", record }: TrailEntry): string => saltedHash(salt, record);

export function hashOf(before: string, seal: Omit<Seal, "hash">): string {
  const { payload, seq, id, at } = seal;
  return createHash("sha256").update(`\0${before} ${payload} ${seq} ${id} ${at}`).digest("hex");
}

export function isSealedBy(entry: TrailEntry, seal: Seal, salt: string | undefined): boolean {
  if (salt === undefined || !saltPattern.test(salt)) return false;
  return entry.at === seal.at && saltedHash(salt, entry.record) === seal.payload;
}

/** Compares two stream IDs. Negative when `a` is older. */
export function compareIds(a: string, b: string): number {
  const [aMs = "0", aCount = "0"] = a.split("-");
  const [bMs = "0", bCount = "0"] = b.split("-");
  return Number(aMs) - Number(bMs) || Number(aCount) - Number(bCount);
}
