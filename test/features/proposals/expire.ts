import { createProposals } from "../../../src/features/proposals/proposals.ts";
import type { TestWorld } from "../../support/start-world.ts";
import { until } from "../../support/until.ts";

/** Lets a proposal that somebody took expire, as if that had been long ago; waits until it has. */
export async function expire({ client, key }: TestWorld, id: string): Promise<void> {
  const proposals = createProposals(client, key);
  const becomes = (state: string) =>
    until(async () => (await proposals.get(id))?.state).toBe(state);
  await becomes("running");
  const { record } = (await proposals.get(id)) ?? {};
  const long = String((await proposals.now()) - 3_600_000);
  await client.hset(key("proposal", id), {
    record: JSON.stringify({ ...record, expiresAt: Number(long) }),
    takenAt: long,
  });
  await proposals.redraw(id);
  await becomes("expired");
}
