import { hash, randomBytes } from "node:crypto";
import type { KeptPin } from "../../attestation/pins.ts";
import { replicasIn } from "../../redis/check.ts";
import { createPending, pendingList } from "../../redis/pending.ts";
import { createOutbox } from "../../redis/outbox.ts";
import { type Keys, type RedisClient, defineScript, redisNow } from "../../redis/redis.ts";
import { createBallot } from "./ballot.ts";
import { arePolicyRulesInForce } from "../../audit/stored-policy.ts";
import { createOnce } from "./once.ts";
import { createThrottling } from "./throttling.ts";
import { type Freeze, createFreeze } from "./freeze.ts";
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
  parseStored,
} from "./stored-request.ts";
import { stepText } from "./history.ts";
import { asksForMore, originKey } from "./origin.ts";
import * as scripts from "./scripts.ts";
import { createSharedCards } from "./shared-cards.ts";

/**
 * Where a request moves to, with the facts of that state. Only states that `moves` in `stage.ts` allows compile. `why` goes into the
 * history and the audit trail; without it, only what was learned is saved.
 */
export interface Move<To extends Stage = Stage> {
  to: To;
  attempt?: number;
  owner?: string;
  why?: string;
  /** Slack shows nothing else by it, so no job looks whether it does. */
  isSilent?: boolean;
  /** The person who did it, if one did. */
  actor?: string;
  /** VMs of a claimed project: no other request may hold one of them. The nonce (`newNonce`) is this claim's alone. */
  claim?: { vmIds: readonly string[]; nonce: string };
  /** A VM's pin, kept in the same step; without one it is dropped. The audit record tells its values. */
  keep?: { vmId: string; pin: KeptPin | undefined };
}

export type Moved<To extends State = State> =
  /** `replicas`: of Redis, in step when it took a claim; undefined where it doesn't say. */
  | { is: "moved"; request: RequestIn<To>; at: number; replicas?: number | undefined }
  | { is: "changed" }
  | { is: "gone" }
  | { is: "frozen"; freeze: Freeze }
  | { is: "locked"; holder: string };

interface NewRequest {
  record: RequestRecord;
  state: "draft" | "authorized";
  /** Whoever makes it ends it right away: no worker is woken for it. */
  isHeld?: boolean | undefined;
}

export type Journal = ReturnType<typeof createJournal>;

/** The half that tells of requests. A person sees only theirs of it. */
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

  async function create(request: NewRequest): Promise<{ id: string; isNew: boolean }> {
    const { record, state } = request;
    const { requester, command, target, input, origin } = record;
    const parts = [requester.id, command, target.id, target.name, input];
    const audit = auditRecord(
      record,
      { team: requester.teamId, move: state, why: "requested" },
      requester.id,
    );
    const [id, isNew] = (await runCreate(
      [
        requestKey(record.id),
        key("ask", originKey(origin)),
        key("same", hash("sha256", JSON.stringify(parts))),
        key("requests", "open"),
        key("requests", "recent"),
        key("requests", "person", requester.id),
        key("requests", "target", target.id || target.name),
        key("audit"),
        pendingList(key),
      ],
      [
        record.id,
        JSON.stringify(record),
        state,
        factsText(firstStage(state)),
        audit,
        requestKey(""),
        record.approval?.digest ?? "",
        record.approval?.expiresAt ?? 0,
        record.approval?.required ?? 0,
        requester.id,
        asksForMore(origin) ? 0 : sameWithinMs,
      ],
    )) as [string, number];
    outbox.wake(id);
    if (isNew === 1 && state === "authorized" && !request.isHeld) steps.wake(id);
    return { id, isNew: isNew === 1 };
  }

  const get = async (id: string) => parseStored(await outbox.get(id));

  async function getMany(ids: readonly string[]): Promise<StoredRequest[]> {
    // A failed read is not a missing request, and fails them all
    const found = await Promise.all(ids.map(get));
    return found.filter((stored) => stored !== undefined);
  }

  /** One compare-and-set: `changed` where the request is no longer as it was read. */
  const move = <To extends Stage>(
    request: RequestIn<MayBecome<To["state"]>>,
    to: Move<To>,
  ): Promise<Moved<To["state"]>> => write(request, to);

  /** Saves what was learned, in the same state. */
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
    const [is, value, movedAt, replication] = (await writeMove(how, keys, args, locks.free)) as [
      string,
      ...(string | number)[],
    ];
    if (is === "frozen") return { is, freeze: JSON.parse(String(value)) as Freeze };
    if (is === "locked") return { is, holder: String(value) };
    if (is === "gone") return { is };
    if (is !== "moved") return { is: "changed" };
    if (how.isSilent !== true) outbox.wake(record.id);
    const at = Number(movedAt);
    return {
      is,
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
    const pin = keep.pin ? JSON.stringify(keep.pin) : "";
    return runKeepPin([...keys, key("freeze"), key("pins")], [...args, keep.vmId, pin]);
  }

  /** Redis time, and whether the journal has this claim: after a failover it may be lost, or another worker's. */
  async function holds({ record, attempt, nonce }: StoredRequest): Promise<[number, boolean]> {
    const args = [attempt, nonce ?? ""];
    const [at, found] = (await runHolds([requestKey(record.id)], args)) as [number, number];
    return [at, found === 1];
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
    get,
    getMany,
    /** The same for whoever reads the same ones again and again. */
    latest: createLatest(redis, requestKey, getMany),
    move,
    saveFacts,
    holds,
    /** What the journal knows of these sends; undefined for a missing request. One failed read fails them all. */
    claimsOf: (sends: readonly { request: string; attempt: number }[]) =>
      Promise.all(
        sends.map(async ({ request, attempt }) => {
          const fields = ["attempt", `claim:${attempt}`];
          const [attempts, nonce] = await redis.hmget(key("request", request), ...fields);
          return attempts ? { attempts: Number(attempts), nonce: nonce ?? undefined } : undefined;
        }),
      ),
    /** Whether our policy is in force: then what was requested under another one was requested before it. */
    isPolicyInForce: (ours: string): Promise<boolean> => arePolicyRulesInForce(redis, key, ours),

    /** Drops requests that are no longer kept from the list. */
    async trim(): Promise<void> {
      await redis.zremrangebyscore(key("requests", "recent"), 0, (await now()) - keepFinalMs);
    },
  };
}

/** What their cards show is read again, and edited where it is something else by now. */
export async function redraw(
  ids: readonly string[],
  { outbox }: Pick<Journal, "outbox">,
): Promise<void> {
  for (const id of ids) {
    await outbox.later(id, 0);
  }
}

/**
 * The first signature of a review stands, and its request's messages show it. It is kept in the hash of the request, as votes are:
 * cards and `/gatehouse why` say of a break-glass for as long as it is kept whether somebody signed.
 */
export async function keepSignature(
  id: string,
  signature: ReviewSignature,
  store: Pick<Journal, "get" | "outbox">,
): Promise<void> {
  if ((await store.get(id)) === undefined) return;
  await store.outbox.mark(id, "review", "", JSON.stringify(signature));
  await redraw([id], store);
}

/** As the request's hash keeps them, beside the state itself, which scripts compare. */
const factsText = ({ state: _apart, ...facts }: Stage): string => JSON.stringify(facts);
