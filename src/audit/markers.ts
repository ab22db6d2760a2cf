import { z } from "zod";
import { parseJson } from "../text/parse-json.ts";

/**
 * Records about the trail itself. They explain why something isn't where the chain says that it is.
 */
const erasedMarker = z.object({
  what: z.literal("audit-erased"),
  who: z.string(),
  why: z.string(),
  erased: z.array(z.object({ seq: z.number(), id: z.string() })),
});
export type ErasedMarker = z.infer<typeof erasedMarker>;

/**
 * A person was removed from these records. `payload` is the salted hash of what is left of each, so
 * that the chain proves it from here on.
 */
const redactedMarker = z.object({
  what: z.literal("audit-redacted"),
  who: z.string(),
  why: z.string(),
  /** Stands for the person: `erased-1`. */
  person: z.string(),
  redacted: z.array(z.object({ seq: z.number(), id: z.string(), payload: z.string() })),
});
export type RedactedMarker = z.infer<typeof redactedMarker>;

const gapMarker = z.object({
  what: z.literal("audit-gap"),
  /**
   * `cut`: the chain ended before an anchored head. `replaced`: it has another seal in the place of
   * the anchored one.
   */
  found: z.enum(["cut", "replaced"]),
  /** The last seal before what is missing, and the number that was given next. */
  after: z.number(),
  next: z.number(),
});
export type GapMarker = z.infer<typeof gapMarker>;

/**
 * Something that is no longer there: a range of record numbers, or a head that was kept elsewhere,
 * as `seq:hash`.
 */
const loss = z.object({ from: z.number(), to: z.number(), head: z.string().optional() });
export type Loss = z.infer<typeof loss>;

/** A person has confirmed these losses, for example after restoring a backup. */
const recordedMarker = z.object({
  what: z.literal("audit-gap-recorded"),
  who: z.string(),
  why: z.string(),
  lost: z.array(loss),
});
export type RecordedMarker = z.infer<typeof recordedMarker>;

const marker = z.discriminatedUnion("what", [
  erasedMarker,
  redactedMarker,
  gapMarker,
  recordedMarker,
]);
type Marker = z.infer<typeof marker>;

/** Undefined for every ordinary record. */
export function readMarker(record: string): Marker | undefined {
  if (!/"audit-(erased|redacted|gap)/.test(record)) return undefined;
  return marker.safeParse(parseJson(record)).data;
}

/** The salted hash that a record vouches for in the place of a redacted one. */
export function payloadVouchedBy(record: string, seq: number): string | undefined {
  const candidate = readMarker(record);
  if (candidate?.what !== "audit-redacted") return undefined;
  return candidate.redacted.find((left) => left.seq === seq)?.payload;
}
