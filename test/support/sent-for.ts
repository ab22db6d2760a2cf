import type { Journal } from "../../src/core/request/journal.ts";
import type { StoredRequest } from "../../src/core/request/stored-request.ts";
import { isFinal } from "../../src/core/request/stage.ts";
import { knownVm } from "../../demo/cards/requests.ts";

/** What the status probe looks at of a request that was sent. */
export interface Sent {
  command: string;
  state: StoredRequest["state"];
  /** The status in which it left the VM. */
  left?: string;
  agoMs?: number;
}

/** A journal in which these requests were sent for targets, by their IDs. */
export const sentFor = (
  sentTo: (id: string) => Sent | undefined,
): Pick<Journal, "recentIds" | "getMany"> => ({
  recentIds: async (of) => ("targetId" in of && sentTo(of.targetId) ? [of.targetId] : []),
  getMany: async (ids) =>
    ids.flatMap((id) => {
      const sent = sentTo(id);
      if (!sent) return [];
      const { command, state, left, agoMs = 0 } = sent;
      const after = left === undefined ? {} : { after: knownVm(id, left) };
      const stage = { state, call: { sentAt: 0 }, ...after };
      const changedAt = Date.now() - agoMs;
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only what the probe looks at
      return [
        { record: { command }, state, stage, final: isFinal(state), changedAt } as StoredRequest,
      ];
    }),
});
