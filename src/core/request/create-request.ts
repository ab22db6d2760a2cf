import { hash } from "node:crypto";
import { type Pending, pendingList } from "../../redis/pending.ts";
import { type Keys, type RedisClient, defineScript, redisNow } from "../../redis/redis.ts";
import { factsText } from "./move-request.ts";
import { asksForMore, originKey } from "./origin.ts";
import { type RequestRecord, auditRecord, sameWithinMs } from "./record.ts";
import * as scripts from "./scripts.ts";
import { firstStage } from "./stage.ts";
import { type StoredRequest, requestRecord } from "./stored-request.ts";

/** The facts by which two requests are equal. */
export type Equal = Pick<
  RequestRecord,
  "requester" | "command" | "target" | "input" | "breakGlass"
>;

interface NewRequest {
  record: RequestRecord;
  state: "draft" | "authorized";
  /** The caller ends it right away, so no worker is woken for it. */
  isHeld?: boolean | undefined;
}

/** Stores new requests, of which a person's equal ones are one. */
export function createRequests(
  redis: RedisClient,
  key: Keys,
  {
    outbox,
    steps,
    get,
  }: Record<"outbox" | "steps", Pick<Pending, "wake">> & {
    get(id: string): Promise<StoredRequest | undefined>;
  },
) {
  const runCreate = defineScript(redis, "gatehouseCreate", scripts.create);
  const requestKey = (id: string) => key("request", id);

  /** Equal requests of a person have the same key. */
  function sameKey({ requester, command, target, input }: Equal): string {
    const parts = [requester.id, command, target.id, target.name, input];
    return key("same", hash("sha256", JSON.stringify(parts)));
  }

  async function create(request: NewRequest): Promise<{ id: string; isNew: boolean }> {
    const { record, state } = request;
    const { requester, origin, breakGlass } = record;
    const audit = auditRecord(
      record,
      { team: requester.teamId, move: state, why: "requested" },
      requester.id,
    );
    const [id, isNew] = (await runCreate(
      [
        requestKey(record.id),
        key("ask", originKey(origin)),
        sameKey(record),
        key("requests", "open"),
        key("requests", "recent"),
        key("requests", "person", requester.id),
        key("requests", "target", record.target.id || record.target.name),
        key("audit"),
        pendingList(key),
      ],
      [
        record.id,
        requestRecord.write(record),
        state,
        factsText(firstStage(state)),
        audit,
        requestKey(""),
        record.approval?.digest ?? "",
        record.approval?.expiresAt ?? 0,
        record.approval?.required ?? 0,
        requester.id,
        asksForMore(origin) ? 0 : sameWithinMs,
        // A request that waits for approval must not stand in for one that skips approvals.
        breakGlass === true ? 1 : 0,
      ],
    )) as [string, number];
    outbox.wake(id);
    if (isNew === 1 && state === "authorized" && !request.isHeld) steps.wake(id);
    return { id, isNew: isNew === 1 };
  }

  /**
   * The request that would stand in for an equal one asked for now, as `create` decides it: it is
   * open, or was just done. It only reads.
   */
  async function findEqual(asked: Equal): Promise<StoredRequest | undefined> {
    const id = await redis.get(sameKey(asked));
    const older = id === null ? undefined : await get(id);
    if (!older) return undefined;
    const isOpen = !older.final && !(asked.breakGlass === true && older.state === "draft");
    const isJustDone =
      older.state === "done" && (await redisNow(redis)) - older.record.createdAt < sameWithinMs;
    return isOpen || isJustDone ? older : undefined;
  }

  return { create, findEqual };
}
