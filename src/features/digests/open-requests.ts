import type { Journal } from "../../core/request/journal.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { stateWords } from "../../core/request/stage.ts";
import { counted } from "../../messages/markdown.ts";
import { approvalsIn } from "../../core/permit/votes.ts";

const most = 500;

export type OpenRequest = ReturnType<typeof factsOf>;
export type ReadOpenRequests = ReturnType<typeof openRequestsIn>;

/** Reads the requests that are open. `onCut` is told what is left out: `500 of 600 open requests`. */
export const openRequestsIn =
  (store: Pick<Journal, "openIds" | "getMany">) =>
  async (onCut?: (part: string) => void): Promise<readonly OpenRequest[]> => {
    const ids = await store.openIds();
    if (ids.length > most) onCut?.(`${most} of ${counted(ids.length, "open request")}`);
    return (await store.getMany(ids.slice(0, most))).map(factsOf);
  };

function factsOf({ record, state, changedAt, stage, votes }: StoredRequest) {
  const { id, command, target, requester, createdAt, approval } = record;
  return {
    id,
    command,
    target,
    /** The requester's name: a digest mentions nobody. */
    requester: requester.name,
    state,
    stateWords: stateWords(state),
    createdAt,
    changedAt: stage.state === "unknown" ? stage.since : changedAt,
    approval: approval && {
      yes: approvalsIn(votes).length,
      required: approval.required,
      expiresAt: approval.expiresAt,
    },
  };
}
