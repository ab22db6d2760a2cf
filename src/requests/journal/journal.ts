import { withTimeOfCreation, withTimeOfMove } from "./time-of-move.ts";
import { hash, randomBytes, randomInt } from "node:crypto";
import type { KeptPin } from "../../attestation/accepted-pins.ts";
import { createOutbox } from "../../redis/due-list.ts";
import { replicasIn } from "../../redis/check.ts";
import { type Keys, defineScript, type RedisClient, redisNow } from "../../redis/redis.ts";
import { createBallot } from "./ballot.ts";
import {
  auditRecord,
  keepFinalMs,
  type Progress,
  type RequestRecord,
  type StoredRequest,
  locksOf,
  lasts,
  pollKeyOf,
  mayMove,
  type State,
} from "./record.ts";
import { packProgress } from "./pack-progress.ts";
import { stepText } from "./steps.ts";
import { fromPairs, parseStored } from "./parse-stored.ts";
import { createLimits } from "./limits.ts";
import type { PollLease } from "./polls.ts";
import { createLates, createLists, createReviews } from "./lists.ts";
import * as scripts from "./scripts.ts";
import { createSharedCards } from "./shared-cards.ts";
import { createSwitches, type Freeze } from "./switches.ts";

/** An equal request of the same person within this time (ms) is the same one, even when it is already done. */
const sameWithinMs = 10_000;

/** `why` goes into the history and the audit trail; without it, only progress is saved. */
export interface Move {
  state: State;
  progress: Progress;
  attempt?: number;
  owner?: string;
  why?: string;
  /** Slack is owed another look at it, as after every move with a `why`. */
  isTold?: boolean;
  /** The person who did it, if one did. */
  actor?: string;
  /** VMs of a claimed project: no other request may hold one of them. The nonce (`newNonce`) is this claim's alone. */
  claim?: { vmIds: readonly string[]; nonce: string };
  /** Decided by a time that was reckoned: refused where that of Redis is another. */
  judged?: { at: number; toleranceMs: number };
  /** Who polls it from now on, unless another worker does; renews the lease of who does already. */
  polls?: PollLease;
  /** A VM's pin, kept in the same step; without one it is dropped. The audit record tells its values. */
  keep?: { vmId: string; pin: KeptPin | undefined };
}

export type Moved =
  /**
   * `replicas`: of Redis, in step when it took a claim; undefined where it doesn't say. `isAlone`: nothing else waits for the polls that
   * `polls` names, which are that worker's.
   */
  | {
      is: "moved";
      request: StoredRequest;
      at: number;
      replicas?: number | undefined;
      isAlone: boolean;
    }
  | { is: "changed" }
  | { is: "gone" }
  /** Only of what was `judged`. */
  | { is: "late"; now: number }
  | { is: "frozen"; freeze: Freeze }
  | { is: "locked"; holder: string };

interface NewRequest {
  record: RequestRecord;
  state: "draft" | "authorized";
  /** Delivered again, it makes no second request. */
  interactionId: string;
  progress?: Progress;
}

/** What a step begins with: the request, Redis time, and what may stop it. */
export interface Opening {
  request: StoredRequest | undefined;
  now: number;
  frozen: Freeze | undefined;
  throttledMs: number;
}

/** With what its first step begins, where that is at once. */
type Created = { id: string; isNew: false } | { id: string; isNew: true; opening: Opening };

/** Redis time, the freeze ('' for none), and for how long calls pause (ms). */
type Stops = [now: number, freeze: string, pauseMs: number];

export type Journal = ReturnType<typeof createJournal>;

/** Ten characters that can be read over the phone: no vowels (no words), no 0/o/1/l. */
export function newRequestId(): string {
  const alphabet = "23456789bcdfghjkmnpqrstvwxz";
  return `r-${Array.from({ length: 10 }, () => alphabet[randomInt(alphabet.length)]).join("")}`;
}

export function newNonce(): string {
  return randomBytes(12).toString("base64url");
}

export function createJournal(redis: RedisClient, key: Keys) {
  const runCreate = defineScript(redis, "gatehouseCreate", scripts.create);
  const runMove = defineScript(redis, "gatehouseMove", scripts.move);
  const runOpening = defineScript(redis, "gatehouseOpening", scripts.opening);
  const runHolds = defineScript(redis, "gatehouseHolds", scripts.holds);
  const now = () => redisNow(redis);
  const requestKey = (id: string) => key("request", id);
  const outbox = createOutbox(redis, key("outbox"), requestKey);

  async function create(request: NewRequest): Promise<Created> {
    const { record } = request;
    const { requester, command, target, input } = record;
    const parts = [requester.id, command, target.id, target.name, input];
    const sameHash = hash("sha256", JSON.stringify(parts));
    const audit = auditRecord(
      record,
      { team: requester.teamId, move: request.state, why: `asked by ${record.via}` },
      requester.id,
    );
    const { state } = request;
    const progress = JSON.stringify(request.progress ?? {});
    const time = randomBytes(12).toString("hex");
    const [id, outcome, at, freeze, pauseMs] = (await runCreate(
      [
        requestKey(record.id),
        key("ask", request.interactionId),
        key("same", sameHash),
        key("requests", "open"),
        key("requests", "recent"),
        key("requests", "person", requester.id),
        key("requests", "target", target.id || target.name),
        key("audit"),
        key("outbox"),
        key("freeze"),
        key("throttled"),
      ],
      [
        record.id,
        JSON.stringify(withTimeOfCreation(record, time, `${time}:`)),
        state,
        progress,
        audit,
        sameWithinMs,
        requestKey(""),
        record.approval?.digest ?? "",
        record.approval?.expiresAt ?? 0,
        record.approval?.required ?? 0,
        requester.id,
        keepFinalMs,
        time,
        record.runsUntil,
      ],
    )) as [string, "same"] | [string, "new", ...Stops];
    outbox.ring(id);
    if (outcome === "same") return { id, isNew: false };
    const first = {
      record: JSON.stringify(withTimeOfCreation(record, at, at + record.runsUntil)),
      state,
      progress,
      createdAt: String(at),
      changedAt: String(at),
      final: "0",
      attempt: "0",
      revision: "1",
    };
    return { id, isNew: true, opening: openingOf(first, [at, freeze, pauseMs]) };
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
        // A failed read is not a missing request: the ledger check would freeze all changes
        if (error) throw error;
        return parseStored(fields as Record<string, string>);
      })
      .filter((stored) => stored !== undefined);
  }

  async function opening(id: string): Promise<Opening> {
    const keys = [requestKey(id), key("freeze"), key("throttled")];
    const answer = (await runOpening(keys, [])) as [number, string[], string, number];
    const [at, fields, freeze, pauseMs] = answer;
    return openingOf(fromPairs(fields), [at, freeze, pauseMs]);
  }

  async function move(request: StoredRequest, to: Move): Promise<Moved> {
    const { record } = request;
    if (!mayMove(request.state, to.state)) {
      throw new Error(`request ${record.id} can't move from ${request.state} to ${to.state}`);
    }
    const attempt = to.attempt ?? request.attempt;
    const owner = to.owner ?? request.owner ?? "";
    const final = isFinal(to.state, to.progress);
    const tell =
      to.isTold === true ? 1 : to.why === undefined ? 0 : looksTheSame(request, to) ? 2 : 1;
    const time = randomBytes(12).toString("hex");
    const locks = locksOf(record, to.claim?.vmIds);
    const watched = ["sending", "accepted", "unclear"].includes(to.state);
    const nonce = to.claim?.nonce ?? request.nonce;
    const audit = to.why
      ? auditRecord(
          record,
          {
            move: to.state,
            attempt: attempt > 1 ? attempt : undefined,
            why: to.why,
            worker: owner,
            ...(to.keep ? { pin: { vm: to.keep.vmId, values: to.keep.pin?.values ?? null } } : {}),
          },
          to.actor,
        )
      : "";
    const [is, value, movedAt, told, replication, alone] = (await runMove(
      [
        requestKey(record.id),
        key("request", record.id, "history"),
        key("requests", "open"),
        key("audit"),
        key("outbox"),
        key("freeze"),
        key("watch", pollKeyOf(record)),
        key("pins"),
        key("polls"),
        key("pollers"),
        key("lock", locks.take),
        ...locks.free.map((lock) => key("lock", lock)),
      ],
      [
        record.id,
        request.revision,
        to.state,
        final ? 1 : 0,
        attempt,
        final ? "" : owner, // nobody moves it any more
        packProgress(withTimeOfMove(to.progress, time), final),
        to.why ? stepText({ state: to.state, why: to.why, actor: to.actor }) : "",
        audit,
        tell,
        to.claim ? 1 : 0,
        watched ? 1 : 0,
        keepFinalMs,
        request.nonce ?? "",
        nonce ?? "",
        to.keep?.vmId ?? "",
        to.keep?.pin ? JSON.stringify(to.keep.pin) : "",
        pollKeyOf(record),
        `"${time}"`,
        to.judged?.at ?? "",
        to.judged?.toleranceMs ?? "",
        to.polls?.worker ?? "",
        to.polls?.leaseMs ?? "",
        to.polls?.always ? 1 : 0,
      ],
    )) as [string, ...(string | number)[]];
    if (is === "frozen") return { is, freeze: JSON.parse(String(value)) as Freeze };
    if (is === "locked") return { is, holder: String(value) };
    if (is === "gone") return { is };
    if (is === "late") return { is, now: Number(value) };
    if (is !== "moved") return { is: "changed" };
    if (told === 1) outbox.ring(record.id);
    const at = Number(movedAt);
    return {
      is,
      at,
      ...(to.claim ? { replicas: replicasIn(replication) } : {}),
      isAlone: alone === 1,
      request: {
        ...request,
        state: to.state,
        final,
        attempt,
        nonce,
        owner: owner || undefined,
        progress: withTimeOfMove(to.progress, at),
        revision: Number(value),
        changedAt: to.why ? at : request.changedAt,
      },
    };
  }

  /** Redis time, and whether the journal has this claim: after a failover it may be lost, or another worker's. */
  async function holds({ record, attempt, nonce }: StoredRequest): Promise<[number, boolean]> {
    const keys = [key("fence"), requestKey(record.id)];
    const [at, found] = (await runHolds(keys, [0, attempt, nonce ?? ""])) as [number, number];
    return [at, found === 1];
  }

  return {
    ...createSwitches(redis, key),
    ...createLimits(redis, key),
    ...createBallot(redis, key, outbox.ring),
    ...createReviews(redis, key),
    ...createLists(redis, key, get),
    ...createLates(redis, key),
    outbox,
    sharedCards: createSharedCards(redis, key, { outbox, key: requestKey }),
    now,
    create,
    get,
    getMany,
    opening,
    move,
    holds,
  };
}

function openingOf(fields: Record<string, string>, [now, freeze, pauseMs]: Stops): Opening {
  return {
    request: parseStored(fields),
    now,
    frozen: freeze === "" ? undefined : (JSON.parse(freeze) as Freeze),
    throttledMs: Math.max(0, pauseMs),
  };
}

/** A claim, and the service's yes, change nothing of what the request's own card says: that it runs. */
function looksTheSame(
  { state, progress }: Pick<StoredRequest, "state" | "progress">,
  to: { state: State; progress: Progress },
): boolean {
  const isWaiting = state === "authorized" && Boolean(progress.waitsFor ?? progress.why);
  const isRun = state === "authorized" ? to.state === "sending" : to.state === "accepted";
  return isRun && !isWaiting && state !== "unclear" && lasts(progress) === lasts(to.progress);
}

/** `not-applied` is final unless its owner may still resend it. */
function isFinal(state: State, progress: Progress): boolean {
  if (state === "not-applied") return progress.mayResend !== true;
  return ["done", "failed", "rejected", "denied", "expired", "cancelled"].includes(state);
}
