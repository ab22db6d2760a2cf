import type { AfterNote } from "../../attestation/render-attestation.ts";
import { hash, randomBytes } from "node:crypto";
import { type KeptPin, pinRecord } from "../../attestation/pins.ts";
import { replicasIn } from "../../redis/check.ts";
import { createPending, pendingList } from "../../redis/pending.ts";
import { createOutbox } from "../../redis/outbox.ts";
import { type Keys, type RedisClient, defineScript, redisNow } from "../../redis/redis.ts";
import { createBallot } from "./ballot.ts";
import { arePolicyRulesInForce } from "../../audit/stored-policy.ts";
import { createOnce } from "./once.ts";
import { createThrottling } from "./throttling.ts";
import { type Freeze, createFreeze, parseFreeze } from "./freeze.ts";
import { createLatest } from "./latest.ts";
import { createLists } from "./lists.ts";
import { createLimits } from "./rate-limits.ts";
import { type MayBecome, type Stage, type State, firstStage, isFinal } from "./stage.ts";
import {
  type RequestRecord,
  auditRecord,
  keepFinalMs,
  lettersOf,
  locksOf,
  pollKeyOf,
  sameWithinMs,
} from "./record.ts";
import {
  type RequestIn,
  type ReviewSignature,
  type StoredRequest,
  evidenceRecord,
  parseStored,
  requestRecord,
  reviewSignature,
} from "./stored-request.ts";
import { stepText } from "./history.ts";
import { asksForMore, originKey } from "./origin.ts";
import * as scripts from "./scripts.ts";
import { createSharedCards } from "./shared-cards.ts";

/** The facts by which two requests are equal. */
export type Equal = Pick<
  RequestRecord,
  "requester" | "command" | "target" | "input" | "breakGlass"
>;

/**
 * Says where a request moves to, with the facts of that state. Only states that `moves` in
 * `stage.ts` allows compile. `why` goes into the history and the audit trail; without it, only new
 * facts are saved.
 */
export interface Move<To extends Stage = Stage> {
  to: To;
  attempt?: number;
  owner?: string;
  why?: string;
  /** Slack shows nothing else after this move, so no job looks whether it does. */
  isSilent?: boolean;
  /** The person who did it, if one did. */
  actor?: string;
  /**
   * The VMs of a claimed project, which no other request may hold meanwhile. The nonce (`newNonce`)
   * belongs to this claim alone.
   */
  claim?: { vmIds: readonly string[]; nonce: string };
  /**
   * The VM's pin, which is kept in the same step; without a pin it is dropped. The audit record
   * tells its values.
   */
  keep?: { vmId: string; pin: KeptPin | undefined };
}

export type Moved<To extends State = State> =
  /**
   * `replicas` is how many replicas were in step with Redis when it took a claim. Undefined where
   * Redis doesn't say.
   */
  | { is: "moved"; request: RequestIn<To>; at: number; replicas?: number | undefined }
  | { is: "changed" }
  | { is: "gone" }
  | { is: "frozen"; freeze: Freeze }
  | { is: "locked"; holder: string };

interface NewRequest {
  record: RequestRecord;
  state: "draft" | "authorized";
  /** The caller ends it right away, so no worker is woken for it. */
  isHeld?: boolean | undefined;
}

export type Journal = ReturnType<typeof createJournal>;

/**
 * The part of the journal that reads requests. A person is shown only the requests that they may
 * see.
 */
export type JournalReads = Pick<Journal, "get" | "getMany"> & ReturnType<typeof createLists>;

export function newRequestId(): string {
  return `r-${lettersOf(randomBytes(10))}`;
}

export function newNonce(): string {
  return randomBytes(12).toString("base64url");
}

export function createJournal(redis: RedisClient, key: Keys) {
  const runCreate = defineScript(redis, "gatehouseCreate", scripts.create);
  const runMove = defineScript(redis, "gatehouseMove", scripts.move);
  const runClaim = defineScript(redis, "gatehouseClaim", scripts.claim);
  const runKeepPin = defineScript(redis, "gatehouseKeepPin", scripts.keepPin);
  const runHolds = scripts.defineHolds(redis);
  const now = () => redisNow(redis);
  const requestKey = (id: string) => key("request", id);
  const outbox = createOutbox(redis, key, scripts.pendingKinds.messages, requestKey);
  const steps = createPending(redis, key, scripts.pendingKinds.step);

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

  const get = async (id: string) => parseStored(id, await outbox.get(id));

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
      older.state === "done" && (await now()) - older.record.createdAt < sameWithinMs;
    return isOpen || isJustDone ? older : undefined;
  }

  async function getMany(ids: readonly string[]): Promise<StoredRequest[]> {
    // A failed read doesn't mean that the request is missing, so it fails the whole call.
    const requests = await Promise.all(ids.map(get));
    return requests.filter((stored) => stored !== undefined);
  }

  /**
   * Moves a request by one compare-and-set. Resolves with `changed` when the request is no longer
   * as it was read.
   */
  const move = <To extends Stage>(
    request: RequestIn<MayBecome<To["state"]>>,
    to: Move<To>,
  ): Promise<Moved<To["state"]>> => write(request, to);

  /** Saves new facts of a request, in the same state. */
  async function saveFacts<In extends StoredRequest>(
    request: In,
    to: In["stage"],
    how: Pick<Move, "isSilent"> = {},
  ): Promise<Moved<In["state"]>> {
    if (to.state !== request.state) throw new Error(`${request.state} isn't ${to.state}`);
    return write(request, { to, ...how });
  }

  async function write<To extends State>(request: StoredRequest, how: Move): Promise<Moved<To>> {
    const { record } = request;
    const { to, claim, keep, why, actor } = how;
    const attempt = how.attempt ?? request.attempt;
    const owner = how.owner ?? request.owner ?? "";
    const final = isFinal(to.state);
    const locks = locksOf(record, claim?.vmIds);
    const nonce = claim?.nonce ?? request.nonce;
    const pin = keep && { vm: keep.vmId, values: keep.pin?.values ?? null };
    const entry = {
      move: to.state,
      attempt: attempt > 1 ? attempt : undefined,
      why,
      worker: owner,
      pin,
    };
    const keys = [
      requestKey(record.id),
      key("requests", "open"),
      key("audit"),
      pendingList(key),
      key("watch", pollKeyOf(record)),
      key("lock", locks.take),
    ];
    const args = [
      record.id,
      `${request.revision} ${request.nonce ?? ""}`,
      to.state,
      final ? 1 : 0,
      attempt,
      final ? "" : owner, // nobody moves it any more
      factsText(to),
      why ? stepText({ state: to.state, why, actor }) : "",
      why ? auditRecord(record, entry, actor) : "",
      pollKeyOf(record),
      how.isSilent === true ? 1 : 0,
    ];
    const [outcome, value, movedAt, replication] = (await writeMove(
      how,
      keys,
      args,
      locks.free,
    )) as [string, ...(string | number)[]];
    if (outcome === "frozen") return { is: outcome, freeze: parseFreeze(String(value), key) };
    if (outcome === "locked") return { is: outcome, holder: String(value) };
    if (outcome === "gone") return { is: outcome };
    if (outcome !== "moved") return { is: "changed" };
    if (how.isSilent !== true) outbox.wake(record.id);
    const at = Number(movedAt);
    return {
      is: outcome,
      at,
      ...(claim ? { replicas: replicasIn(replication) } : {}),
      request: {
        ...request,
        state: to.state,
        stage: to,
        final,
        attempt,
        nonce,
        owner: owner || undefined,
        revision: Number(value),
        changedAt: why ? at : request.changedAt,
        // The compiler doesn't see that state and stage belong together.
      } as unknown as RequestIn<To>,
    };
  }

  function writeMove(
    { claim, keep }: Move,
    keys: readonly string[],
    args: readonly (string | number)[],
    mustBeFree: readonly string[],
  ): Promise<unknown> {
    if (claim) {
      const locks = mustBeFree.map((lock) => key("lock", lock));
      return runClaim([...keys, key("freeze"), ...locks], [...args, claim.nonce]);
    }
    if (!keep) return runMove(keys, args);
    const pin = keep.pin ? pinRecord.write(keep.pin) : "";
    return runKeepPin([...keys, key("freeze"), key("pins")], [...args, keep.vmId, pin]);
  }

  /**
   * Tells Redis time, and whether the journal has this claim. After a failover the claim may be
   * lost, or another worker's.
   */
  async function holds({ record, attempt, nonce }: StoredRequest): Promise<[number, boolean]> {
    const args = [attempt, nonce ?? ""];
    const [at, held] = (await runHolds([requestKey(record.id)], args)) as [number, number];
    return [at, held === 1];
  }

  return {
    ...createFreeze(redis, key),
    ...createThrottling(redis, key),
    ...createOnce(redis, key),
    ...createLimits(redis, key),
    ...createBallot(redis, key, { outbox, steps }),
    ...createLists(redis, key, get),
    outbox,
    /** Requests that weren't applied, each until its late look. */
    lates: createPending(redis, key, "late-look"),
    /** Requests that a worker has something to do for. */
    steps,
    sharedCards: createSharedCards(redis, key, outbox),
    now,
    create,
    findEqual,
    get,
    getMany,
    /** Reads open requests for callers that do so again and again. */
    latest: createLatest(redis, requestKey, getMany),
    move,
    saveFacts,
    holds,
    /**
     * Resolves with the claims that the journal knows for these sends, and with undefined for a
     * missing request. One failed read fails the whole call.
     */
    claimsOf: (sends: readonly { request: string; attempt: number }[]) =>
      Promise.all(
        sends.map(async ({ request, attempt }) => {
          const fields = ["attempt", `claim:${attempt}`];
          const [attempts, nonce] = await redis.hmget(key("request", request), ...fields);
          return attempts ? { attempts: Number(attempts), nonce: nonce ?? undefined } : undefined;
        }),
      ),
    /**
     * Whether this process's policy is in force. A request that was made under another policy was
     * then made before it.
     */
    isPolicyInForce: (ours: string): Promise<boolean> => arePolicyRulesInForce(redis, key, ours),

    /** Removes requests that are no longer kept from the list. */
    async trim(): Promise<void> {
      await redis.zremrangebyscore(key("requests", "recent"), 0, (await now()) - keepFinalMs);
    },
  };
}

/**
 * Has the cards of these requests rendered again, and edited where they show something else by now.
 */
export async function redraw(
  ids: readonly string[],
  { outbox }: Pick<Journal, "outbox">,
): Promise<void> {
  for (const id of ids) {
    await outbox.later(id, 0);
  }
}

/**
 * Records the first signature of a review, and has its request's messages show it. The signature is
 * kept in the request's hash, like votes, so that cards and `/gatehouse why` can tell whether a
 * break-glass was signed for as long as the request is kept. Resolves with the signature that
 * counts: this one, or the first.
 */
export async function keepSignature(
  id: string,
  signature: ReviewSignature,
  store: Pick<Journal, "get" | "outbox">,
): Promise<ReviewSignature> {
  if ((await store.get(id)) === undefined) return signature;
  const isFirst = await store.outbox.mark(id, "review", "", reviewSignature.write(signature));
  await redraw([id], store);
  return isFirst ? signature : ((await store.get(id))?.delivered.review ?? signature);
}

/**
 * Keeps what the evidence showed after a change, so that every message of every process tells the
 * same end. Resolves with the note that counts: this one, or the first.
 */
export async function keepEvidence(
  id: string,
  { line, ...more }: AfterNote,
  store: Pick<Journal, "get" | "outbox">,
): Promise<AfterNote> {
  const note = { line, ...more };
  const stored = await store.get(id);
  if (stored === undefined) return note;
  const text = evidenceRecord.write({ line: line.value, ...more });
  if (await store.outbox.mark(id, "evidence", "", text)) return note;
  return (await store.get(id))?.delivered.evidence ?? note;
}

/**
 * The facts as the request's hash keeps them, without the state, which scripts compare and which
 * stands beside them.
 */
const factsText = ({ state: _apart, ...facts }: Stage): string => JSON.stringify(facts);
