import { createHash, randomInt } from "node:crypto";
import { defineScript, type Keys, type RedisClient } from "../redis.ts";
import { createBallot } from "./ballot.ts";
import { auditRecord, keepFinalMs } from "./journal-entry.ts";
import { createLates } from "./lates.ts";
import { createLists } from "./lists.ts";
import { createOutbox } from "./outbox.ts";
import type { Progress, RequestRecord, StoredRequest } from "./record.ts";
import { locksOf, watchKeyOf } from "./record.ts";
import { createReviews } from "./reviews.ts";
import { redisNow } from "./redis-now.ts";
import * as scripts from "./scripts.ts";
import { mayMove, type State } from "./states.ts";
import { parseStored } from "./stored.ts";
import { createSwitches, type Freeze } from "./switches.ts";

/** An equal request of the same person within this time is the same request, even when it is done already (ms). */
const sameWithinMs = 10_000;

/** What a move writes. `why` goes into the history and the audit trail; without it, progress is only noted. */
export interface Move {
  state: State;
  progress: Progress;
  attempt?: number;
  owner?: string;
  why?: string;
  /** Who did it, when a person did. */
  actor?: string;
  /** Ids of the VMs of a project that is claimed: none of them may be held by another request. */
  claim?: { vmIds: readonly string[] };
}

export type Moved =
  | { is: "moved"; request: StoredRequest; at: number }
  | { is: "changed" }
  | { is: "gone" }
  | { is: "frozen"; freeze: Freeze }
  | { is: "locked"; holder: string };

export interface NewRequest {
  record: RequestRecord;
  state: "draft" | "authorized";
  /** The delivery that asked for it: delivered again it makes no second request. */
  askId: string;
  progress?: Progress;
}

/** The journal of requests in Redis. */
export type Store = ReturnType<typeof createStore>;

/** Ten characters that can be read over the phone: no vowels (no words), no 0/o/1/l. */
export function newRequestId(): string {
  const alphabet = "23456789bcdfghjkmnpqrstvwxz";
  return `r-${Array.from({ length: 10 }, () => alphabet[randomInt(alphabet.length)]).join("")}`;
}

export function createStore(redis: RedisClient, key: Keys) {
  const runCreate = defineScript(redis, "gatehouseCreate", scripts.create);
  const runMove = defineScript(redis, "gatehouseMove", scripts.move);
  const now = () => redisNow(redis);
  const requestKey = (id: string) => key("request", id);

  async function create(request: NewRequest): Promise<{ id: string; isNew: boolean }> {
    const { record } = request;
    const sameHash = createHash("sha256")
      .update(
        JSON.stringify([
          record.requester.id,
          record.command,
          record.target.id,
          record.target.name,
          record.input,
        ]),
      )
      .digest("hex");
    const audit = auditRecord(
      record,
      { move: request.state, why: `asked by ${record.via}` },
      record.requester.id,
    );
    const [id, outcome] = (await runCreate(
      [
        requestKey(record.id),
        key("ask", request.askId),
        key("same", sameHash),
        key("requests", "open"),
        key("requests", "recent"),
        key("requests", "person", record.requester.id),
        key("requests", "target", record.target.id || record.target.name),
        key("audit"),
        key("outbox"),
      ],
      [
        record.id,
        JSON.stringify(record),
        request.state,
        JSON.stringify(request.progress ?? {}),
        audit,
        sameWithinMs,
        requestKey(""),
        record.approval?.digest ?? "",
        record.approval?.expiresAt ?? 0,
        record.approval?.required ?? 0,
        record.requester.id,
      ],
    )) as [string, string];
    return { id, isNew: outcome === "new" };
  }

  async function get(id: string): Promise<StoredRequest | undefined> {
    return parseStored(await redis.hgetall(requestKey(id)));
  }

  async function getMany(ids: readonly string[]): Promise<StoredRequest[]> {
    if (ids.length === 0) return [];
    const pipeline = redis.pipeline();
    for (const id of ids) pipeline.hgetall(requestKey(id));
    const answers = (await pipeline.exec()) ?? [];
    return answers
      .map(([error, fields]) => {
        // What could not be read is not what isn't there: the ledger would take it for a journal that forgot
        if (error) throw error;
        return parseStored(fields as Record<string, string>);
      })
      .filter((stored) => stored !== undefined);
  }

  async function move(request: StoredRequest, to: Move): Promise<Moved> {
    const { record } = request;
    if (!mayMove(request.state, to.state)) {
      throw new Error(`request ${record.id} can't move from ${request.state} to ${to.state}`);
    }
    const attempt = to.attempt ?? request.attempt;
    const owner = to.owner ?? request.owner ?? "";
    const final = isFinal(to.state, to.progress);
    const locks = locksOf(record, to.claim?.vmIds);
    const watched = ["sending", "accepted", "unclear"].includes(to.state);
    const audit = to.why
      ? auditRecord(
          record,
          { move: to.state, from: request.state, attempt, why: to.why, worker: owner },
          to.actor,
        )
      : "";
    const answer = (await runMove(
      [
        requestKey(record.id),
        key("request", record.id, "history"),
        key("requests", "open"),
        key("audit"),
        key("outbox"),
        key("freeze"),
        key("watch", watchKeyOf(record)),
        key("lock", locks.take),
        ...locks.free.map((lock) => key("lock", lock)),
      ],
      [
        record.id,
        request.revision,
        to.state,
        final ? 1 : 0,
        attempt,
        owner,
        JSON.stringify(to.progress),
        to.why
          ? JSON.stringify({
              state: to.state,
              why: to.why,
              ...(to.actor ? { actor: to.actor } : {}),
            })
          : "",
        audit,
        to.why ? 1 : 0,
        to.claim ? 1 : 0,
        watched ? 1 : 0,
        keepFinalMs,
      ],
    )) as [string, ...(string | number)[]];
    switch (answer[0]) {
      case "moved":
        return {
          is: "moved",
          at: Number(answer[2]),
          request: {
            ...request,
            state: to.state,
            final,
            attempt,
            owner: owner || undefined,
            progress: to.progress,
            revision: Number(answer[1]),
            changedAt: to.why ? Number(answer[2]) : request.changedAt,
          },
        };
      case "frozen":
        return { is: "frozen", freeze: JSON.parse(String(answer[1])) as Freeze };
      case "locked":
        return { is: "locked", holder: String(answer[1]) };
      case "gone":
        return { is: "gone" };
      default:
        return { is: "changed" };
    }
  }

  return {
    ...createSwitches(redis, key),
    ...createOutbox(redis, key),
    ...createBallot(redis, key),
    ...createReviews(redis, key),
    ...createLists(redis, key, get),
    ...createLates(redis, key),
    now,
    create,
    get,
    getMany,
    move,
  };
}

/** `not-applied` is final unless its owner may still send it once more. */
function isFinal(state: State, progress: Progress): boolean {
  if (state === "not-applied") return progress.mayResend !== true;
  return ["done", "failed", "rejected", "denied", "expired", "cancelled"].includes(state);
}
