import type { Board } from "../../redis/board.ts";
import { paced } from "../../core/deliver/post-once.ts";

/** How soon a group looks whether another one has called for both (ms). */
export const lookAgainMs = 1_000;

/**
 * Paces edits of a card about alerts. No edit counts as the last one, because results of requests
 * are more urgent.
 */
export const pacedEdit = (
  { delivered }: Pick<Board, "delivered">,
  shown: { version: string; look: string },
  now: number,
  editMs: number | undefined,
) => paced(delivered, { ...shown, isLast: false }, now, editMs);

/** The shortest of these waits (ms); 0 and false are none. */
export function soonest(...waits: readonly (number | false | undefined)[]): number {
  const all = waits.flatMap((wait) => wait || []);
  return all.length > 0 ? Math.min(...all) : 0;
}
