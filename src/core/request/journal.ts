import { randomBytes } from "node:crypto";
import type { AfterNote } from "../../attestation/render-attestation.ts";
import { arePolicyRulesInForce } from "../../audit/stored-policy.ts";
import { createOutbox } from "../../redis/outbox.ts";
import { createPending } from "../../redis/pending.ts";
import { type Keys, type RedisClient, redisNow } from "../../redis/redis.ts";
import { createBallot } from "./ballot.ts";
import { createRequests } from "./create-request.ts";
import { createFreeze } from "./freeze.ts";
import { createLatest } from "./latest.ts";
import { createLists } from "./lists.ts";
import { createMoves } from "./move-request.ts";
import { createOnce } from "./once.ts";
import { createLimits } from "./rate-limits.ts";
import { keepFinalMs, lettersOf } from "./record.ts";
import * as scripts from "./scripts.ts";
import { createSharedCards } from "./shared-cards.ts";
import {
  type ReviewSignature,
  type StoredRequest,
  evidenceRecord,
  parseStored,
  reviewSignature,
} from "./stored-request.ts";
import { createThrottling } from "./throttling.ts";

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

/**
 * The requests in Redis, with what stands beside them: the freeze, limits, votes, and lists. A
 * request is stored by `create`, and everything that happens to it afterwards is a `move`.
 */
export function createJournal(redis: RedisClient, key: Keys) {
  const runHolds = scripts.defineHolds(redis);
  const now = () => redisNow(redis);
  const requestKey = (id: string) => key("request", id);
  const outbox = createOutbox(redis, key, scripts.pendingKinds.messages, requestKey);
  const steps = createPending(redis, key, scripts.pendingKinds.step);

  const get = async (id: string) => parseStored(id, await outbox.get(id));

  async function getMany(ids: readonly string[]): Promise<StoredRequest[]> {
    // A failed read doesn't mean that the request is missing, so it fails the whole call.
    const requests = await Promise.all(ids.map(get));
    return requests.filter((stored) => stored !== undefined);
  }

  /**
   * Tells whether the journal has this claim at this time (Redis, ms). After a failover the claim
   * may be lost, or another worker's.
   */
  async function holds({ record, attempt, nonce }: StoredRequest) {
    const args = [attempt, nonce ?? ""];
    const [at, held] = (await runHolds([requestKey(record.id)], args)) as [number, number];
    return { at, isHeld: held === 1 };
  }

  return {
    ...createFreeze(redis, key),
    ...createThrottling(redis, key),
    ...createOnce(redis, key),
    ...createLimits(redis, key),
    ...createBallot(redis, key, { outbox, steps }),
    ...createLists(redis, key, get),
    ...createRequests(redis, key, { outbox, steps, get }),
    ...createMoves(redis, key, { outbox }),
    outbox,
    /** Requests that weren't applied, each until its late look. */
    lates: createPending(redis, key, "late-look"),
    /** Requests that a worker has something to do for. */
    steps,
    sharedCards: createSharedCards(redis, key, outbox),
    now,
    get,
    getMany,
    /** Reads open requests for callers that do so again and again. */
    latest: createLatest(redis, requestKey, getMany),
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
