import type { Journal } from "../../src/core/request/journal.ts";
import type { StoredRequest } from "../../src/core/request/stored-request.ts";

/** What a journal says in which a request was just sent for these targets, and for no other. */
export const sentFor = (
  isTouched: (id: string) => boolean,
): Pick<Journal, "recentIds" | "getMany"> => ({
  recentIds: async (of) => ("targetId" in of && isTouched(of.targetId) ? ["r-1"] : []),
  getMany: async (ids) =>
    // Only what the probe looks at
    ids.map(() => ({ final: false, state: "accepted", changedAt: 0 }) as StoredRequest),
});
