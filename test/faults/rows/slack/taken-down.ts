import { looking } from "../../stage/looking.ts";
import type { Stage } from "../../stage/stage.ts";

/**
 * Resolves when so many requests are in the journal. Who asks is looked up in Slack first: what isn't in the journal when
 * Slack goes away can't be, and nobody can be told.
 */
export async function takenDown(stage: Stage, count: number): Promise<void> {
  await looking(
    async () => ((await stage.journal()).length === count ? true : undefined),
    20_000,
    async () => `not all ${count} requests were written down`,
  );
}
