import { z } from "zod";

/** Records about the trail itself: they explain why something isn't where the chain says it was. */
export const erasedMarker = z.object({
  what: z.literal("audit-erased"),
  who: z.string(),
  why: z.string(),
  erased: z.array(z.object({ seq: z.number(), id: z.string() })),
});
export type ErasedMarker = z.infer<typeof erasedMarker>;

export const gapMarker = z.object({
  what: z.literal("audit-gap"),
  /** `cut`: the chain ended before an anchored head. `replaced`: it holds another seal than the anchored one. */
  found: z.enum(["cut", "replaced"]),
  /** The last seal before what is missing, and the number that was given next. */
  after: z.number(),
  next: z.number(),
});
export type GapMarker = z.infer<typeof gapMarker>;

const marker = z.discriminatedUnion("what", [erasedMarker, gapMarker]);

/** Undefined for every ordinary record. */
export function readMarker(record: string): ErasedMarker | GapMarker | undefined {
  if (!record.includes('"audit-erased"') && !record.includes('"audit-gap"')) return undefined;
  try {
    const parsed = marker.safeParse(JSON.parse(record));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}
