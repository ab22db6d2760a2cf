import type { FuzzWorld } from "./fuzz-world.ts";

/** What of a request, of Gatehouse and of the service a press could have changed. */
export async function outcomeOf(world: FuzzWorld) {
  const requests = await world.requests();
  return JSON.stringify({
    requests: requests
      .map(({ record, state, votes, revision }) => [record.id, state, votes, revision])
      .map((row) => JSON.stringify(row))
      .toSorted(),
    writes: world.compute.writes().map(({ method, path }) => `${method} ${path}`),
    frozen: await world.store.freezeState(),
    changed: (await world.audit())
      .filter(({ what }) => what !== "refusal" && what !== "vote-refused")
      .map(({ what, move, vote, request }) => [what, move, vote, request]),
  });
}
