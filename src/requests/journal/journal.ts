import { hash, randomBytes } from "node:crypto";
import type { KeptPin } from "../../attestation/pins.ts";
import { createDueList, createOutbox } from "../../redis/due-list.ts";
import { replicasIn } from "../../redis/check.ts";
import { type Keys, defineScript, type RedisClient, redisNow } from "../../redis/redis.ts";
import { createBallot } from "./ballot.ts";
import {
  auditRecord,
  type Progress,
  type RequestRecord,
  type ReviewSignature,
  type StoredRequest,
  keepFinalMs,
  lettersOf,
  locksOf,
  pollKeyOf,
  sameWithinMs,
  mayMove,
  type State,
  stepText,
  parseStored,
} from "./record.ts";
import { createLimits, createLists, createReviews } from "./limits.ts";
import * as scripts from "./scripts.ts";
import { createSharedCards, createSwitches, type Freeze } from "./switches.ts";
import { during, originNow, workNow, workOnRequest, type Log, type Spans } from "../../log/log.ts";
import type { LimitName, Telemetry } from "../../log/telemetry.ts";

/** `why` goes into the history and the audit trail; without it, only progress is saved. */
export interface Move {
  state: State;
  progress: Progress;
  attempt?: number;
  owner?: string;
  why?: string;
  /** The person who did it, if one did. */
  actor?: string;
  /** VMs of a claimed project: no other request may hold one of them. The nonce (`newNonce`) is this claim's alone. */
  claim?: { vmIds: readonly string[]; nonce: string };
  /** A VM's pin, kept in the same step; without one it is dropped. The audit record tells its values. */
  keep?: { vmId: string; pin: KeptPin | undefined };
}

export type Moved =
  /** `replicas`: of Redis, in step when it took a claim; undefined where it doesn't say. */
  | { is: "moved"; request: StoredRequest; at: number; replicas?: number | undefined }
  | { is: "changed" }
  | { is: "gone" }
  | { is: "frozen"; freeze: Freeze }
  | { is: "locked"; holder: string };

interface NewRequest {
  record: RequestRecord;
  state: "draft" | "authorized";
  /** Delivered again, it makes no second request. */
  interactionId: string;
  progress?: Progress;
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
  const outbox = createOutbox(redis, key("outbox"), requestKey);

  async function create(request: NewRequest): Promise<{ id: string; isNew: boolean }> {
    const { record, state, interactionId, progress = {} } = request;
    const { requester, command, target, input } = record;
    const parts = [requester.id, command, target.id, target.name, input];
    const audit = auditRecord(
      record,
      { team: requester.teamId, move: state, why: `asked by ${record.via}` },
      requester.id,
    );
    const [id, isNew] = (await runCreate(
      [
        requestKey(record.id),
        key("ask", interactionId),
        key("same", hash("sha256", JSON.stringify(parts))),
        key("requests", "open"),
        key("requests", "recent"),
        key("requests", "person", requester.id),
        key("requests", "target", target.id || target.name),
        key("audit"),
        key("outbox"),
      ],
      [
        record.id,
        JSON.stringify(record),
        state,
        JSON.stringify(progress),
        audit,
        requestKey(""),
        record.approval?.digest ?? "",
        record.approval?.expiresAt ?? 0,
        record.approval?.required ?? 0,
        requester.id,
        isAgain(interactionId) ? 0 : sameWithinMs,
      ],
    )) as [string, number];
    outbox.ring(id);
    return { id, isNew: isNew === 1 };
  }

  const get = async (id: string) => parseStored(await outbox.get(id));

  async function getMany(ids: readonly string[]): Promise<StoredRequest[]> {
    // A failed read is not a missing request, and fails them all
    const found = await Promise.all(ids.map(get));
    return found.filter((stored) => stored !== undefined);
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
    const nonce = to.claim?.nonce ?? request.nonce;
    const pin = to.keep && { vm: to.keep.vmId, values: to.keep.pin?.values ?? null };
    const entry = {
      move: to.state,
      attempt: attempt > 1 ? attempt : undefined,
      why: to.why,
      worker: owner,
      pin,
    };
    const keys = [
      requestKey(record.id),
      key("requests", "open"),
      key("audit"),
      key("outbox"),
      key("watch", pollKeyOf(record)),
      key("polls"),
      key("lock", locks.take),
    ];
    const args = [
      record.id,
      `${request.revision} ${request.nonce ?? ""}`,
      to.state,
      final ? 1 : 0,
      attempt,
      final ? "" : owner, // nobody moves it any more
      JSON.stringify(to.progress),
      to.why ? stepText({ state: to.state, why: to.why, actor: to.actor }) : "",
      to.why ? auditRecord(record, entry, to.actor) : "",
      pollKeyOf(record),
    ];
    const [is, value, movedAt, replication] = (await writeMove(to, keys, args, locks.free)) as [
      string,
      ...(string | number)[],
    ];
    if (is === "frozen") return { is, freeze: JSON.parse(String(value)) as Freeze };
    if (is === "locked") return { is, holder: String(value) };
    if (is === "gone") return { is };
    if (is !== "moved") return { is: "changed" };
    outbox.ring(record.id);
    const at = Number(movedAt);
    return {
      is,
      at,
      ...(to.claim ? { replicas: replicasIn(replication) } : {}),
      request: {
        ...request,
        state: to.state,
        final,
        attempt,
        nonce,
        owner: owner || undefined,
        progress: to.progress,
        revision: Number(value),
        changedAt: to.why ? at : request.changedAt,
      },
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
    ...createSwitches(redis, key),
    ...createLimits(redis, key),
    ...createBallot(redis, key, outbox.ring),
    ...createReviews(redis, key),
    ...createLists(redis, key, get),
    outbox,
    /** Requests that were resent: their first call may still take effect. */
    lates: createDueList(redis, key("lates")),
    sharedCards: createSharedCards(redis, key, outbox),
    now,
    create,
    get,
    getMany,
    move,
    holds,
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
    outbox.ring(id);
  }
}

/** The first signature of a review stands, and its request's messages show it. */
export async function keepSignature(
  id: string,
  signature: ReviewSignature,
  store: Pick<Journal, "get" | "outbox">,
): Promise<void> {
  if ((await store.get(id)) === undefined) return;
  await store.outbox.mark(id, "review", "", JSON.stringify(signature));
  await redraw([id], store);
}

/** A press of its own (`once` in `slack/conversation/press.ts`) asks for what was just done. */
const isAgain = (interactionId: string) => /^after:.*:again$/.test(interactionId);

/** `not-applied` is final unless its owner may still resend it. */
function isFinal(state: State, progress: Progress): boolean {
  if (state === "not-applied") return progress.mayResend !== true;
  return ["done", "failed", "rejected", "denied", "expired", "cancelled"].includes(state);
}

interface Step {
  from: State | undefined;
  to: State;
  why: string;
  /** Redis time (ms) at which it came into `from`, and left it. */
  since: number;
  at: number;
  /** The person who did it, if one did. */
  by?: string | undefined;
  attempt?: number | undefined;
  worker?: string | undefined;
}

/**
 * The journal, with its log lines, metrics, and spans: each move of a request is one line of the log, one sample, and one
 * span; a freeze and a thaw are warnings, whoever caused them.
 */
export function observed(
  journal: Journal,
  { log, telemetry, spans }: { log: Log; telemetry: Telemetry; spans?: Spans | undefined },
): Journal {
  function moved(record: RequestRecord, { from, since, at, ...step }: Step): void {
    const { command, target, requester, roll: rollout } = record;
    const work = workOnRequest(record);
    const of = { command, target: target.name, targetId: target.id, person: requester.id, rollout };
    log.info("request.moved", { ...work.ids, ...of, from: from ?? "", ...step });
    if (from === undefined || !spans) return;
    const attributes = { command, to: step.to, why: step.why };
    during(work, () =>
      spans.ended({ name: `request ${from}`, startMs: since, endMs: at, attributes }),
    );
  }

  function ended(request: StoredRequest, from: State, at: number): void {
    const { record, state, progress } = request;
    const { command } = record;
    telemetry.requests.inc({ command, end: state });
    if (progress.sentAt !== undefined && from !== "unknown")
      telemetry.settledSeconds.observe({ command }, Math.max(0, at - progress.sentAt) / 1000);
    spans?.ended({
      name: command,
      ...workOnRequest(record).parents[0],
      parent: record.parentSpan,
      startMs: record.createdAt,
      endMs: at,
      attributes: {
        request: record.id,
        command,
        target: record.target.id,
        person: record.requester.id,
        end: state,
      },
      failed: state === "failed" ? (progress.why ?? state) : undefined,
    });
  }

  function waits(limit: LimitName, ms: number): void {
    if (ms > 0) telemetry.limitWaits.observe({ limit }, ms / 1000);
  }

  return {
    ...journal,

    async create(request) {
      const record = { ...request.record, ...originNow() };
      const created = await journal.create({ ...request, record });
      if (created.isNew) {
        const { createdAt, requester, via } = record;
        const times = { since: createdAt, at: createdAt, by: requester.id };
        moved(record, { from: undefined, to: request.state, why: `asked by ${via}`, ...times });
      }
      return created;
    },

    async move(request, to) {
      const outcome = await journal.move(request, to);
      if (outcome.is !== "moved") return outcome;
      const { record, state: from, changedAt: since, attempt: before } = request;
      const { at, request: now } = outcome;
      const { state, attempt, owner: worker } = now;
      if (state === "sending" && request.progress.waitsFor) waits("target", at - since);
      if (state === "sending" && before === 0) {
        const waitedMs = at - record.createdAt;
        telemetry.sentSeconds.observe({ command: record.command }, Math.max(0, waitedMs) / 1000);
      }
      const { why, actor: by } = to;
      const who = { by, attempt: attempt || undefined, worker };
      if (why) moved(record, { from, to: state, why, since, at, ...who });
      if (now.final && !request.final) ended(now, from, at);
      return outcome;
    },

    async vote(request, voter, vote, seen, meets) {
      const outcome = await journal.vote(request, voter, vote, seen, meets);
      if (outcome.is === "again") return outcome;
      const { record, changedAt: since } = request;
      log.info("request.voted", {
        ...workOnRequest(record).ids,
        ...workNow()?.ids,
        person: voter.id,
        vote,
        ...outcome,
      });
      if (outcome.is !== "authorized" && outcome.is !== "denied") return outcome;
      const at = Date.now();
      const why = `${vote === "deny" ? "denied" : "approved"} by ${voter.id}`;
      moved(record, { from: request.state, to: outcome.is, why, since, at, by: voter.id });
      if (outcome.is === "denied") ended({ ...request, state: "denied" }, request.state, at);
      return outcome;
    },

    async freeze(freeze) {
      const isNew = await journal.freeze(freeze);
      const { by, id, reason } = freeze;
      if (isNew) log.warn("changes.frozen", { by, reason, ...(id ? { person: id } : {}) });
      return isNew;
    },

    async thaw(by) {
      const isNew = await journal.thaw(by);
      if (isNew) log.warn("changes.thawed", { person: by });
      return isNew;
    },

    async note(entry) {
      const id = await journal.note(entry);
      log.info("audit.noted", entry);
      return id;
    },

    async throttledMs() {
      const ms = await journal.throttledMs();
      waits("compute", ms);
      return ms;
    },
  };
}

/** Logs and counts results that were posted. */
export function observeTold({ log, telemetry }: { log: Log; telemetry: Telemetry }) {
  return (requests: readonly StoredRequest[]): void => {
    for (const { record, changedAt } of requests) {
      const seconds = Math.max(0, Date.now() - changedAt) / 1000;
      telemetry.toldSeconds.observe(seconds);
      log.info("request.told", { ...workOnRequest(record).ids, seconds });
    }
  };
}
