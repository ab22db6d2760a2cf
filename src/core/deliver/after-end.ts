import type { ChangeCommand, Target } from "../../registry/define.ts";
import { type Journal, redraw } from "../request/journal.ts";
import { callOf, deciderOf } from "../request/stage.ts";
import type { StoredRequest } from "../request/stored-request.ts";
import { isToldElsewhere } from "./after-result.ts";

export interface AfterEndOptions {
  store: Pick<Journal, "outbox">;
  /** Finds the IDs of requests that wait for approval and whose cards tell about this target. */
  askingAbout(target: Target): Promise<readonly string[]>;
  /** Called at least once for each ended request, before its result is posted. */
  recordResults(request: StoredRequest, command: ChangeCommand): Promise<void>;
  /**
   * Called at least once for each request that ended with a change (`isToldElsewhere`), after all
   * of its own messages are posted.
   */
  tellElsewhere(request: StoredRequest, command: ChangeCommand): Promise<void>;
}

/**
 * Creates what follows the end of a request beside its own messages. The delivery of the messages
 * drives it, because every move of a request makes them due, and the order to them counts. Each
 * part is done at least once, and a field of the request then remembers it, so that whatever
 * process delivers the messages goes on with it after another one died.
 */
export function createAfterEnd(options: AfterEndOptions) {
  const { store, askingAbout, recordResults, tellElsewhere } = options;
  const { outbox } = store;

  /** Redraws the cards that wait for approval and tell about the target of this request. */
  const redrawAround = async ({ record }: StoredRequest): Promise<void> =>
    redraw(await askingAbout(record.target), store);

  return {
    /** Does what must be done before the end, or an unknown outcome, is told. */
    async beforeResult(request: StoredRequest, command: ChangeCommand): Promise<void> {
      const { marks } = request.delivered;
      const recorded = recordedMark(request);
      if (request.final && marks["afterwards"] !== recorded) {
        await recordResults(request, command);
        await redrawAround(request);
        await outbox.remember(request.record.id, { "said:afterwards": recorded });
      }
      if (request.state === "unknown" && marks["unknown"] === undefined)
        await redrawAround(request);
    },
    /** Tells other places of the change, once the request's own messages are posted. */
    async afterResult(request: StoredRequest, command: ChangeCommand): Promise<void> {
      const isTold = request.delivered.marks["told-elsewhere"] !== undefined;
      if (isTold || !isToldElsewhere(request)) return;
      await tellElsewhere(request, command);
      await outbox.remember(request.record.id, { "said:told-elsewhere": "1" });
    },
  };
}

/**
 * Names the outcome whose results were recorded, in the field `said:afterwards`. The outcome may
 * change once more, and its results are then recorded again: a person records the ID of a snapshot
 * later, or a change that was told as not applied takes effect late.
 */
function recordedMark({ state, stage }: StoredRequest): string {
  if (state === "not-applied") return state;
  const { snapshotId, claimed } = callOf(stage)?.answer ?? {};
  const outcome = snapshotId ?? (claimed && `claimed ${claimed.id}`) ?? "1";
  return deciderOf(stage) ? outcome : "1";
}
