import type { Anchor } from "./anchors.ts";
import type { GapMarker } from "./chain.ts";
import type { Trail } from "./trail.ts";

/** `isNew`: this call wrote it into the trail. */
type Gap = GapMarker & { isNew: boolean };

/**
 * Compares the chain with its known heads: this process's last anchor, and the highest number that Redis says was
 * given (`given`). A difference is written into the trail once, and sealing continues after it.
 */
export async function findGap(
  trail: Trail,
  known: { last: Anchor | undefined; given?: number },
): Promise<Gap | undefined> {
  const { last, given = 0 } = known;
  const head = await trail.head();
  const after = head?.seq ?? 0;
  const reached = Math.max(last?.seq ?? 0, given);
  if (reached > after) return say(trail, { found: "cut", after, next: reached + 1 }, last);
  if (!last) return undefined;
  const there = await trail.seal(last.seq);
  if (there?.hash === last.hash) return undefined;
  return say(trail, { found: "replaced", after: last.seq - 1, next: last.seq }, last);
}

async function say(
  trail: Trail,
  gap: Omit<GapMarker, "what">,
  anchored: Anchor | undefined,
): Promise<Gap> {
  const record: GapMarker = { what: "audit-gap", ...gap };
  const name = `${gap.found} ${gap.after} ${gap.next} ${anchored?.hash ?? ""}`;
  return {
    ...record,
    isNew: await trail.appendOnce(name, { ...record, ...(anchored && { anchored }) }),
  };
}
