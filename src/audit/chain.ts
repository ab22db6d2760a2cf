import { createHash } from "node:crypto";
import { z } from "zod";
import { parseJson } from "../text/parse-json.ts";

/**
 * A record is sealed by two hashes, both over plain text, so that `printf … | sha256sum` can check them:
 *
 *     payload = SHA-256(salt record)
 *     hash    = SHA-256(0x00 hash-of-the-seal-before ' ' payload ' ' seq ' ' id ' ' at)
 *
 * The chain covers the payload's hash, not the record: when record and salt are erased, it still verifies, and without
 * the 128-bit salt the content can't be guessed.
 */
export interface Seal {
  /** 1, 2, 3, …; a number is skipped only where records were lost, and then a record says so. */
  seq: number;
  /** The record's id in the stream, `milliseconds-counter`. */
  id: string;
  /** Redis time of the record, ms, as the text that was hashed. */
  at: string;
  payload: string;
  hash: string;
}

/** A record of the stream. `record` is JSON; its exact text was sealed. */
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

/** Records about the trail itself: they explain why something isn't where the chain says. */
const erasedMarker = z.object({
  what: z.literal("audit-erased"),
  who: z.string(),
  why: z.string(),
  erased: z.array(z.object({ seq: z.number(), id: z.string() })),
});
export type ErasedMarker = z.infer<typeof erasedMarker>;

const gapMarker = z.object({
  what: z.literal("audit-gap"),
  /** `cut`: the chain ended before an anchored head. `replaced`: it holds another seal than the anchored one. */
  found: z.enum(["cut", "replaced"]),
  /** The last seal before what is missing, and the number that was given next. */
  after: z.number(),
  next: z.number(),
});
export type GapMarker = z.infer<typeof gapMarker>;

/** What isn't there any more: records by their numbers, or a head that was kept elsewhere, `seq:hash`. */
const loss = z.object({ from: z.number(), to: z.number(), head: z.string().optional() });
export type Loss = z.infer<typeof loss>;

/** A person knows of the losses, as after a restored backup. */
const recordedMarker = z.object({
  what: z.literal("audit-gap-recorded"),
  who: z.string(),
  why: z.string(),
  lost: z.array(loss),
});
export type RecordedMarker = z.infer<typeof recordedMarker>;

const marker = z.discriminatedUnion("what", [erasedMarker, gapMarker, recordedMarker]);

/** Undefined for every ordinary record. */
export function readMarker(record: string): z.infer<typeof marker> | undefined {
  if (!record.includes('"audit-erased"') && !record.includes('"audit-gap')) return undefined;
  return marker.safeParse(parseJson(record)).data;
}
