import type { KnownSnapshot } from "../../fleet/inventory/snapshots.ts";
import type { Refusal, Seen } from "../../registry/define.ts";

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
 *
 * A vote moves `draft` to `authorized`, and to `denied` both of them; its script does that by itself (`ballot.ts`).
 */
const moves = {
  draft: ["expired", "cancelled"],
  authorized: ["sending", "expired", "cancelled", "done"],
  sending: ["accepted", "rejected", "unclear", "authorized", "done"],
  accepted: ["done", "failed", "unclear"],
  unclear: ["done", "failed", "not-applied", "unknown", "accepted", "rejected", "authorized"],
  "not-applied": ["done"],
  unknown: ["done", "not-applied"],
  done: [],
  failed: [],
  rejected: [],
  denied: [],
  expired: [],
  cancelled: [],
} as const;

export type State = keyof typeof moves;

/**
 * The states from which a request may move to each of these. A move to the same state saves new
 * facts.
 */
export type MayBecome<To extends State> = {
  [From in State]: [To] extends [From | (typeof moves)[From][number]] ? From : never;
}[State];

/** One read of the target. */
export interface Look {
  at: number;
  /** "RUNNING", or "gone". */
  status: string;
  /** Equal prints are equal reads. */
  print: string;
}

/** The answer of the compute service. */
export interface Answer {
  class: string;
  status?: number;
  message?: string;
  snapshotId?: string;
  /**
   * The ID that somebody who doesn't see every VM named. It counts once someone who does see them
   * has confirmed it.
   */
  claimed?: NonNullable<KnownSnapshot["claimed"]>;
}

/** The snapshot that is taken right before data is replaced. Restoring it undoes the change. */
export interface SafetySnapshot {
  /** The request that takes it. */
  request: string;
  snapshotId: string;
  /**
   * When its call was sent (Redis, ms): what was written later isn't in it. Undefined where an older
   * release took it.
   */
  at?: number;
}

/** The one call of a claim, which may have left. All times are Redis time (ms). */
export interface Call {
  /** When it was claimed, right before its send. */
  sentAt: number;
  /** The target as it was read right before the claim. Undefined where there was none. */
  before?: Seen;
  /** When the call ended (nothing more of it can leave). */
  endedAt?: number;
  answer?: Answer;
  /** The proof that the change began, and when that was seen. */
  mark?: { status: string; at: number };
  safety?: SafetySnapshot;
}

/** The results of reads of the target since the call. All times are Redis time (ms). */
export interface Reads {
  last?: Look;
  /** Since when all reads were equal. */
  sameSince?: number;
  /** Since when all reads after the quiet period were equal. */
  quietSince?: number;
  /** The number of reads after the quiet period. */
  quietLooks?: number;
  /** Since when no read has succeeded. */
  blindSince?: number;
  /** The number of reads since then, all of which failed. */
  blindLooks?: number;
}

export const noReads: Reads = {};

/** How often the request couldn't go on, over all its attempts. */
export interface Setbacks {
  /** Claims returned before their call left. */
  returned: number;
  /** Calls that couldn't reach the compute service. */
  unreachable: number;
  /** Calls answered with a 429. */
  throttled: number;
  /** Steps and judgments that threw. */
  errors: number;
}

export const noSetbacks: Setbacks = { returned: 0, unreachable: 0, throttled: 0, errors: 0 };

/** The request that holds the target of another one. */
export interface Holder {
  request: string;
  requesterName?: string;
  command?: string;
  /** Its outcome is unknown, so a person must say what happened. */
  unknown?: { noun: string; sentAt: number };
}

/** Who resolved an unknown outcome, or canceled. */
export interface Decider {
  id: string;
  name: string;
  reason?: string;
}

interface Called {
  call: Call;
  reads: Reads;
  setbacks: Setbacks;
}

/** The facts of each state; `why` is for people. */
interface Facts {
  draft: {
    /** Half of the time for approvals has passed. */
    isHalfWay?: true;
  };
  authorized: {
    setbacks: Setbacks;
    /** Says what the request waits for. */
    why?: string;
    /** The request doesn't start before this time (Redis, ms). */
    notBefore?: number;
    waitsFor?: Holder;
    /** How often in a row it was put off. */
    holds?: number;
    /** ID of the request that takes its safety snapshot. */
    safetyRequest?: string;
  };
  sending: Called;
  accepted: Called;
  unclear: Called & { why?: string };
  unknown: Called & {
    why?: string;
    since: number;
    /** The number of reminders that were due so far. */
    reminders: number;
    /** The number of `timing.reminders` that came or were put off. */
    remindersOver: number;
    /**
     * When the next reminder is due (Redis, ms), because someone can't tell yet. None comes before.
     */
    asksAgainAt?: number;
  };
  done: {
    why?: string;
    setbacks: Setbacks;
    /** Undefined where there was nothing to send. */
    call?: Call;
    reads: Reads;
    /** The target as it is after the change. Undefined for one that is gone. */
    after?: Seen;
    /** The target was already in the wanted state, found by the preflight check or after a 409. */
    already?: true;
    decidedBy?: Decider;
  };
  failed: { why: string; call: Call; reads: Reads; after?: Seen };
  rejected: { why: string; call: Call; reads: Reads; setbacks: Setbacks };
  "not-applied": { why?: string; call: Call; reads: Reads; decidedBy?: Decider };
  denied: object;
  expired: { why: string; hint?: string; setbacks: Setbacks };
  cancelled: {
    why: string;
    hint?: string;
    setbacks: Setbacks;
    /** The command that the card offers where there was nothing to do. */
    instead?: Refusal["instead"];
    /** A freeze refused it. */
    wasFrozen?: true;
    decidedBy?: Decider;
  };
}

export type StageIn<S extends State> = { [In in S]: { state: In } & Facts[In] }[S];

/** How far a request is, with the facts of its state. */
export type Stage = StageIn<State>;

/** The stages that reads decide about. */
export type PolledStage = StageIn<"sending" | "accepted" | "unclear">;

/** The stage in which a request is made. */
export const firstStage = (state: "draft" | "authorized"): StageIn<"draft" | "authorized"> =>
  state === "draft" ? { state } : { state, setbacks: noSetbacks };

/** The call that may have left; undefined before the claim, and where nothing had to be sent. */
export const callOf = (stage: Stage): Call | undefined =>
  "call" in stage ? stage.call : undefined;

export const readsOf = (stage: Stage): Reads => ("reads" in stage ? stage.reads : noReads);

/** The target as it was before the request. Where nothing was sent, it is the target as it is. */
export function beforeOf(stage: Stage): Seen | undefined {
  const call = callOf(stage);
  return call ? call.before : afterOf(stage);
}

/** The target as it was when the request ended. */
export const afterOf = (stage: Stage): Seen | undefined =>
  "after" in stage ? stage.after : undefined;

/** The request that holds its target. */
export const holderOf = (stage: Stage): Holder | undefined =>
  stage.state === "authorized" ? stage.waitsFor : undefined;

/** The reason for its state, for people. */
export const whyOf = (stage: Stage): string | undefined => ("why" in stage ? stage.why : undefined);

export const deciderOf = (stage: Stage): Decider | undefined =>
  "decidedBy" in stage ? stage.decidedBy : undefined;

export const isAlready = (stage: Stage): boolean => stage.state === "done" && !!stage.already;

const finalStates: readonly State[] = [
  "done",
  "failed",
  "rejected",
  "not-applied",
  "denied",
  "expired",
  "cancelled",
];

export const isFinal = (state: State): boolean => finalStates.includes(state);

/** Whether reads decide the outcome in this state. */
export const isPolled = (state: State): state is PolledStage["state"] =>
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

/** Says a state in words. A state that this release doesn't know is shown as it is. */
export function stateWords(state: string): string {
  return (Object.hasOwn(words, state) && words[state]) || state;
}

/**
 * Says how much of it was sent, for a request that ends before its next call. Only a 429 comes
 * before that one.
 */
export function sentWords({ throttled }: Setbacks): string {
  return throttled > 0 ? "the earlier call was not applied" : "nothing was sent";
}

const lastsMs = 3000;

/**
 * Whether the request was still under way a few seconds after its send. Its card then says what it
 * waits for.
 */
export function lasts(stage: Stage): boolean {
  const call = callOf(stage);
  const { last } = readsOf(stage);
  return call !== undefined && last !== undefined && last.at - call.sentAt >= lastsMs;
}
