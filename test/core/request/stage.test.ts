import { describe, expect, it } from "vitest";
import { type Journal, createJournal } from "../../../src/core/request/journal.ts";
import type { RequestIn, StoredRequest } from "../../../src/core/request/stored-request.ts";
import { testRedis } from "../../support/with-redis.ts";
import { storeRequest, restartOf, stageOf, vmTarget } from "../asking.ts";

/**
 * Lists moves that the compiler refuses. `tsc`, which every check runs, fails when one of the
 * marked lines compiles. Nothing here is run, because the journal doesn't check the table at run
 * time.
 */
export function refusedMoves({ move, saveFacts }: Journal, request: StoredRequest) {
  const asked = request as RequestIn<"draft">;
  const sending = request as RequestIn<"sending">;
  const unclear = request as RequestIn<"unclear">;
  const done = request as RequestIn<"done">;
  return [
    // @ts-expect-error -- reads must have shown nothing before an outcome is unknown
    move(sending, { to: stageOf("unknown") }),
    // @ts-expect-error -- a draft waits for its approvals, which only votes give
    move(asked, { to: stageOf("authorized") }),
    // @ts-expect-error -- a draft can't be claimed without its approvals
    move(asked, { to: stageOf("sending") }),
    // @ts-expect-error -- an ended request stays ended
    move(done, { to: stageOf("authorized") }),
    // @ts-expect-error -- the state of the request must be known
    move(request, { to: stageOf("done") }),
    // @ts-expect-error -- facts are saved only in their own state
    saveFacts(sending, stageOf("accepted")),
    // @ts-expect-error -- an accepted request has a call
    move(sending, { to: { state: "accepted", setbacks: sending.stage.setbacks } }),
    move(sending, { to: stageOf("unclear") }),
    move(unclear, { to: stageOf("unknown") }),
    saveFacts(sending, sending.stage),
  ];
}

describe("saving what was learned", () => {
  it("refuses the facts of another state before Redis is asked", async () => {
    await using here = await testRedis();
    const store = createJournal(here.redis, here.key);
    const asked = await storeRequest(store, restartOf(vmTarget("a")));
    const again = () => store.get(asked.record.id);
    const read = await again();
    if (!read) throw new Error("it is gone");
    await expect(store.saveFacts(read, stageOf("done"))).rejects.toThrow("draft isn't done");
    expect((await again())?.revision).toBe(1);
    await store.saveFacts(asked, { state: "draft", isHalfWay: true });
    expect(await again()).toMatchObject({ revision: 2, stage: { isHalfWay: true } });
  });
});
