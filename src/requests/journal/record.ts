import type { Approvable } from "../../approvals/fingerprint.ts";
import type { Vote } from "../../approvals/votes.ts";
import type { Traced } from "../../log/traces.ts";
import type { VoteNeed } from "../../policy/approval-rule.ts";
import { type Fields, fieldsNamed } from "../../redis/redis.ts";
import { placeIn, shownIn } from "../../redis/shown.ts";
import type { Labels, Refusal, Seen, Target } from "../../registry/define.ts";
import { type Origin, auditOrigin, undoneBy } from "./origin.ts";

/** The part of a request that never changes. Anything different is another request. Nothing is decided by its trace. */
export interface RequestRecord extends Traced {
  id: string;
  command: string;
  /** Arguments as words, parsed again by each worker. */
  input: Record<string, unknown>;
  target: Target;
  requester: { id: string; teamId: string; name: string };
  channelId: string;
  threadTs?: string;
  /** The channel of the target's team, where it was requested elsewhere: there they decide, and hear of what is unknown. */
  teamChannel?: string;
  origin: Origin;
  reason?: string;
  policyVersion: string;
  /** The VMs of a project to delete. */
  children?: readonly Target[];
  /** Approvers read these names, so approvals cover them. */
  labels?: Labels;
  /** Of the snapshot to restore, where Gatehouse knows it: what was written later is lost. */
  snapshotAt?: number;
  approval?: Approval;
  /** Skipped approval in an emergency; reviewed afterwards. */
  breakGlass?: boolean;
  /** Milliseconds, Redis time. */
  createdAt: number;
  /** Expires at this time unless started: a late command is worse than none. */
  runsUntil: number;
}

/** Whether someone signs a review of it. A safety snapshot is part of the request that it was taken for. */
export const isReviewed = ({ breakGlass, origin }: RequestRecord): boolean =>
  breakGlass === true && origin.kind !== "safety";

export interface Approval {
  /** Of all together. */
  required: number;
  /** Who they must be, as of the request (`needsOf`). */
  votes?: readonly VoteNeed[];
  /** Of each of `votes`, where not `access.approve` says who: what those are called, and who could; undefined for all members. */
  needs?: readonly { called: readonly string[]; who?: readonly Named[] }[];
  /** Milliseconds, Redis time. */
  expiresAt: number;
  /** Fingerprint of everything that is approved (`approvals/fingerprint.ts`). */
  digest: string;
  /** The rule that requires them, in words. */
  why: string;
  /** Who could where `access.approve` says, as of the request; undefined for every full member. */
  who?: readonly Named[] | undefined;
  /** Half way to the end: then its thread is reminded, and who requested it hears of the end in a direct message. */
  remindsAt?: number;
  /** Facts for approvers, as of the request; `at`, where a fact has a time (ms), is shown in the reader's zone. */
  evidence: readonly (readonly [label: string, text: string, at?: number])[];
}

/** The label of the fact that says in which status a target was. */
export const statusWhenRequested = "Status when requested";

interface Named {
  id: string;
  name: string;
}

/** One read of the target. */
export interface Look {
  at: number;
  /** "RUNNING", or "gone". */
  status: string;
  /** Equal prints are equal reads. */
  print: string;
}

/** The part that grows while the request lives. */
export interface Progress {
  /** Read right before the send. */
  before?: Seen | undefined;
  after?: Seen;
  sentAt?: number;
  /** The call has ended: nothing more of it can leave. */
  endedAt?: number;
  answer?: {
    class: string;
    status?: number;
    message?: string;
    snapshotId?: string;
    /** The ID that somebody who doesn't see every VM named: it counts once someone who does has confirmed it. */
    claimed?: { id: string; by: string };
  };
  /** Proof that it began, and when it was seen. */
  mark?: { status: string; at: number } | undefined;
  lastLook?: Look;
  /** All reads since then were equal. */
  sameSince?: number;
  /** The same, counting only reads after the quiet period. */
  quietSince?: number;
  /** Number of reads after the quiet period. */
  quietLooks?: number;
  /** No read has succeeded since then. */
  blindSince?: number;
  looks?: number;
  notSent?: number | undefined;
  throttled?: number | undefined;
  /** Claims returned before their call left. */
  returned?: number;
  stepErrors?: number;
  /** Not before this time (Redis, ms). */
  notBefore?: number;
  /** The request that holds the target. */
  waitsFor?: {
    request: string;
    requesterName?: string;
    command?: string;
    /** Its outcome is unknown, so a person must say what became of it. */
    unknown?: { noun: string; sentAt: number };
  };
  /** The reason for its state, for people. */
  why?: string;
  hint?: string;
  /** What is offered where there was nothing to do. */
  instead?: Refusal["instead"];
  /** A freeze turned it away. */
  wasFrozen?: boolean;
  /** The target was already in the wanted state, found by the preflight check or after a 409. */
  already?: boolean;
  /** The safety snapshot: its request, and its ID once known. */
  safety?: { request: string; snapshotId?: string };
  /** Who resolved an unknown outcome, or canceled. */
  decidedBy?: { id: string; name: string; reason?: string };
  unknownSince?: number;
  /** Reminders of an unknown outcome due so far. */
  reminders?: number;
  /** Of `timing.reminders`, those that came or were put off. */
  remindersOver?: number;
  /** Someone can't tell yet: the next reminder is due then (Redis, ms), and none before. */
  asksAgainAt?: number;
  /** Half of the time for approvals has passed. */
  isHalfWay?: boolean;
}

/** `revision` grows with every write, and a write names the one that it read. */
export interface StoredRequest {
  record: RequestRecord;
  state: State;
  final: boolean;
  attempt: number;
  /** Random, of this attempt's claim; undefined before the first. */
  nonce?: string | undefined;
  owner: string | undefined;
  revision: number;
  changedAt: number;
  progress: Progress;
  votes: readonly Vote[];
  delivered: Delivered;
}

/** What Slack shows so far. Not under the revision: posting changes nothing. */
export interface Delivered {
  card?: { channelId: string; ts: string };
  /** The card before, which Slack no longer lets be edited: its buttons stay. */
  formerCard?: { channelId: string; ts: string };
  /** `cardVersion` as last shown. */
  cardView?: string | undefined;
  /** Notice → its ts, or "posting <since>" while a post may be under way. */
  said: Record<string, string>;
  /** Why the channel takes none of its messages: they are direct ones. */
  closedBy?: string | undefined;
  /** Where it was requested, when its card is in the channel of its team. */
  asked?: { channelId: string; ts: string } | undefined;
  /** The one before, which Slack no longer lets be edited. */
  formerAsked?: { channelId: string; ts: string } | undefined;
  /** `cardVersion` as last shown there. */
  askedView?: string | undefined;
  /** The bot can't post in the channel of its team: the card is where it was requested. */
  isTeamClosed?: boolean;
  /** It has left a shared card, and joins none again. */
  isAlone?: boolean;
  /** Who signed the review of its break-glass. */
  review?: ReviewSignature | undefined;
}

export interface ReviewSignature {
  /** A name. */
  by: string;
  at: number;
  /** What was checked. */
  why: string;
}

const alphabet = "23456789bcdfghjkmnpqrstvwxz";

/** For IDs, one for each byte, that can be read over the phone: no vowels (no words), no 0/o/1/l. */
export function lettersOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => alphabet[byte % alphabet.length]).join("");
}

/** Waiting requests with the same key share their polls. */
export function pollKeyOf({ target }: Pick<RequestRecord, "target">): string {
  if (target.kind === "vm") return `vms/${target.projectId}`;
  return target.id === "" ? `named/${target.name}` : `project/${target.id}`;
}

/** The lock that a claim takes, and those that must be free: a change of a project excludes changes of its VMs. */
export function locksOf({ target }: RequestRecord, vmIds: readonly string[] = []) {
  if (target.kind === "vm")
    return { take: `vm:${target.id}`, free: [`project:${target.projectId}`] };
  if (target.id === "") return { take: `name:${target.name}`, free: [] };
  return { take: `project:${target.id}`, free: vmIds.map((id) => `vm:${id}`) };
}

/** A read in words: a status, "gone", or how many share a name. */
export function statusOf(seen: Seen | undefined): string {
  if (seen === undefined) return "gone";
  if (!isList(seen)) return seen.status;
  return seen.length > 1 ? `${seen.length} of that name` : (seen[0]?.status ?? "gone");
}

const lastsMs = 3000;

/** Whether it was still under way a few seconds after its send: then its card says what it waits for. */
export function lasts({ sentAt, lastLook }: Pick<Progress, "sentAt" | "lastLook">): boolean {
  return sentAt !== undefined && lastLook !== undefined && lastLook.at - sentAt >= lastsMs;
}

/** The promise for a request that ends before its next call: only a 429 precedes that one. */
export function sentWords({ throttled }: Progress): string {
  return throttled ? "the earlier call was not applied" : "nothing was sent";
}

/** The ID is the same, but it was created at another time. */
export function isAnotherOne(seen: Seen | undefined, before: Seen | Target | undefined): boolean {
  if (seen === undefined || before === undefined || isList(seen) || isList(before)) return false;
  return (
    seen.createdAt !== undefined &&
    before.createdAt !== undefined &&
    seen.createdAt !== before.createdAt
  );
}

export function isList(seen: Seen | Target): seen is Extract<Seen, readonly unknown[]> {
  return Array.isArray(seen);
}

/** What an approval covers: everything but its own fingerprint. */
export function approvableOf(
  record: RequestRecord,
  approval: Pick<Approval, "required" | "votes" | "expiresAt"> & { evidence: unknown },
): Approvable {
  const undoes = undoneBy(record);
  return {
    id: record.id,
    command: record.command,
    input: record.input,
    target: record.target,
    ...(record.children ? { children: record.children } : {}),
    ...(record.labels ? { labels: record.labels } : {}),
    ...(record.snapshotAt ? { snapshotAt: record.snapshotAt } : {}),
    ...(undoes ? { undoes } : {}),
    requesterId: record.requester.id,
    teamId: record.requester.teamId,
    channelId: record.channelId,
    ...(record.reason === undefined ? {} : { reason: record.reason }),
    policyVersion: record.policyVersion,
    required: approval.required,
    ...(approval.votes ? { votes: approval.votes } : {}),
    expiresAt: approval.expiresAt,
    evidence: approval.evidence,
  };
}

/**
 * The life of a request. Each move is one compare-and-set in Redis, with its audit record and its outbox entry.
 *
 *     draft ──► authorized ──► sending ──► accepted ──► done | failed | unclear
 *       │            ▲             │  ├──► rejected
 *       │            └─────────────┘  └──► unclear ──► done | not-applied | unknown
 *       └──► denied | expired | cancelled                    unknown ──► done | not-applied, by a named person
 *
 * - `draft`        waits for approvals
 * - `authorized`   may be sent once
 * - `sending`      claimed: the call may have left; only the owner may send, once
 * - `accepted`     the service said 2xx: the change is running, not done
 * - `unclear`      it may have happened; reads decide, after a quiet period
 * - `not-applied`  two stable reads show no effect; one late look may find it after all
 * - `unknown`      a person must check; the target stays locked for changes
 */
const moves = {
  draft: ["authorized", "denied", "expired", "cancelled"],
  authorized: ["sending", "expired", "cancelled", "rejected", "done", "not-applied"],
  sending: ["accepted", "rejected", "unclear", "authorized", "done"],
  accepted: ["done", "failed", "unclear"],
  unclear: ["done", "failed", "not-applied", "unknown", "accepted", "rejected", "authorized"],
  "not-applied": ["done"],
  unknown: ["done", "not-applied", "failed"],
  done: [],
  failed: [],
  rejected: [],
  denied: [],
  expired: [],
  cancelled: [],
} as const;

export type State = keyof typeof moves;

/** A move to the same state only saves progress. */
export function mayMove(from: State, to: State): boolean {
  const next: readonly State[] = moves[from];
  return from === to || next.includes(to);
}

/** Reads decide its outcome. */
export const isPolled = (state: State): boolean =>
  state === "sending" || state === "accepted" || state === "unclear";

export function isKnownState(state: string): state is State {
  return Object.hasOwn(moves, state);
}

const words: Readonly<Record<string, string>> = {
  draft: "waiting for approval",
  authorized: "waiting to start",
  sending: "being sent",
  accepted: "running",
  unclear: "being checked",
  "not-applied": "did not happen",
  unknown: "outcome unknown",
  cancelled: "canceled",
};

/** A state in words; one that this version doesn't know is shown as it is. */
export function stateWords(state: string): string {
  return (Object.hasOwn(words, state) && words[state]) || state;
}

/** An equal request of the same person within this time (ms) is the same one, even when it is already done. */
export const sameWithinMs = 10_000;
/** How long a finished request is kept. */
export const keepFinalMs = 90 * 24 * 3600_000;

/**
 * The audit record of a step. IDs, not names, for people; no parameters that could be secret. Each tells what it is about and for
 * whom; what never changes otherwise stands in the request's first record.
 */
export function auditRecord(
  record: RequestRecord,
  entry: Record<string, unknown>,
  actor?: string,
): string {
  const { target, requester, approval } = record;
  return JSON.stringify({
    what: "request",
    request: record.id,
    command: record.command,
    target: { kind: target.kind, id: target.id, name: target.name },
    requester: requester.id,
    digest: approval?.digest,
    origin: auditOrigin(record.origin),
    who: actor,
    ...entry,
  });
}

/** Undefined for a record that is gone or can't be read. */
export function parseStored(fields: Fields): StoredRequest | undefined {
  try {
    return parseFields(fields);
  } catch {
    // A broken record must not hide those that are read with it
    return undefined;
  }
}

function parseFields(fields: Fields): StoredRequest | undefined {
  if (!fields["record"] || !fields["state"]) return undefined;
  const record = JSON.parse(fields["record"]) as RequestRecord;
  if (!isKnownState(fields["state"])) return undefined;
  return {
    record,
    state: fields["state"],
    final: fields["final"] === "1",
    attempt: Number(fields["attempt"]),
    nonce: fields[`claim:${fields["attempt"]}`],
    owner: fields["owner"] || undefined,
    revision: Number(fields["revision"]),
    changedAt: Number(fields["changedAt"]),
    progress: JSON.parse(fields["progress"] ?? "{}") as Progress,
    votes: fieldsNamed("vote:", fields)
      .map(([, value]) => withReason(JSON.parse(value) as Vote, fields["denial"]))
      .toSorted((a, b) => a.at - b.at),
    delivered: {
      ...shownIn(fields),
      cardView: fields["face"],
      closedBy: fields["fallback"],
      asked: placeIn(fields["asked"]),
      formerAsked: placeIn(fields["was:asked"]),
      askedView: fields["asked-face"],
      isTeamClosed: fields["team-closed"] !== undefined,
      isAlone: fields["alone"] !== undefined,
      review: fields["review"] ? (JSON.parse(fields["review"]) as ReviewSignature) : undefined,
    },
  };
}

function withReason(vote: Vote, denial: string | undefined): Vote {
  if (denial === undefined) return vote;
  const { by, reason } = JSON.parse(denial) as { by: string; reason: string };
  return by === vote.voterId && vote.vote === "deny" ? { ...vote, reason } : vote;
}

/** A step of a request's history. */
export interface HistoryStep {
  /** Redis, ms. */
  at: number;
  state: string;
  why: string;
  /** The person who did it, if one did. */
  actor?: string | undefined;
}

/** As the request's hash keeps it, a line for each (`keepStep`). */
export const stepText = ({ state, why, actor }: Omit<HistoryStep, "at">): string =>
  JSON.stringify(actor === undefined ? [state, why] : [state, why, actor]);

/** The history in a request's hash. */
export function parseSteps({
  createdAt,
  history,
}: {
  createdAt: number;
  history: string;
}): HistoryStep[] {
  return history
    .split("\n")
    .slice(0, -1)
    .map((row) => {
      const at = row.indexOf(" ");
      const [state, why, actor] = JSON.parse(row.slice(at + 1)) as [string, string, string?];
      const afterMs = Number(row.slice(0, at));
      return { at: createdAt + afterMs, state, why, ...(actor === undefined ? {} : { actor }) };
    });
}
