import { createHash, randomInt } from "node:crypto";
import type { Rolling } from "../registry/rolling.ts";
import type { Target } from "../registry/target.ts";

/** Records carry this number; a process that doesn't know a record's number leaves it alone. */
export const rollVersion = 1;

/**
 * One command on many targets. The roll decides when the next target may begin; each of them becomes a request of the
 * journal, which alone decides whether and how anything is sent.
 *
 *     planned ──► running ◄──► paused
 *                    │            │
 *                    └─► ending ◄─┘   no further one begins, those under way end
 *                           │
 *     running ──► done      └──► stopped (by a person) | failed (too many failed, or one was not attested)
 *
 * - `planned`  shown to a person in a dialog, who has not said yes; forgotten after a while
 */
export type RollState = "planned" | "running" | "paused" | "ending" | "done" | "stopped" | "failed";

/** The part that never changes once a person said yes. */
export interface RollRecord {
  v: typeof rollVersion;
  id: string;
  command: string;
  /** Arguments as words, without the targets and without how to go over them. */
  input: Record<string, unknown>;
  /** The targets as they were written: `web-*`. */
  words: string;
  options: Rolling;
  /** How many targets there are. */
  total: number;
  /** The words named every VM that there was: then the number is typed, however few they are. */
  isEverything?: boolean;
  requester: { id: string; teamId: string; name: string };
  channelId: string;
  threadTs?: string;
  policyVersion: string;
  /** Asked for as well, but not to be touched, and why. */
  leftOut: readonly LeftOut[];
  /** Milliseconds, Redis time. */
  createdAt: number;
}

export interface LeftOut {
  name: string;
  why: string;
}

/** A target that has begun and of which it isn't known how it ended. */
export interface OpenTarget {
  /** Its place among the targets, from 0. */
  n: number;
  request: string;
}

export interface RollProgress {
  /** The first target that has not begun. */
  next: number;
  open: readonly OpenTarget[];
  /** Begun, but turned away with nothing sent while the roll was paused: they begin anew after it. */
  again?: readonly number[];
  /** How often a place has begun anew, by place: each time is another request. */
  anew?: Readonly<Record<string, number>>;
  ok: number;
  /** Of those that went well: nothing had to be sent. */
  already: number;
  /** Those whose outcome nobody knows included: both stop a roll. */
  failed: number;
  /** Of those: how many nobody knows about. */
  unknown?: number;
  /** Why it stands where it stands, as words for a person. */
  why?: string;
  /** What it ends as, once those under way have ended. */
  endsAs?: "stopped" | "failed";
  /** Who paused or stopped it last. */
  by?: { id: string; name: string };
  startedAt?: number;
}

/** How one target ended. */
export interface Outcome {
  n: number;
  is: "ok" | "already" | "failed" | "unknown" | "cancelled" | "returned";
  request: string;
  why?: string;
  /** From the send until it had settled, in milliseconds. */
  tookMs?: number;
  /** What runs now is not proven to be what policy allows: no further one may begin, whatever the options say. */
  isUntrusted?: boolean;
}

/** A roll as it stands. `revision` grows with every write; a write names the one it was made against. */
export interface StoredRoll {
  record: RollRecord;
  state: RollState;
  final: boolean;
  revision: number;
  changedAt: number;
  progress: RollProgress;
  /** When a worker last looked after it (Redis, ms). */
  seenAt: number;
  delivered: {
    said: Record<string, string>;
    card?: { channelId: string; ts: string };
    /** State and time of the last edit: `running 1763600000000`. */
    shown?: string;
    /** The channel doesn't take our messages. */
    isElsewhere: boolean;
  };
}

const alphabet = "23456789bcdfghjkmnpqrstvwxz";

/** Like a request's id: can be read over the phone. */
export function newRollId(): string {
  return `roll-${Array.from({ length: 8 }, () => alphabet[randomInt(alphabet.length)]).join("")}`;
}

/**
 * The id of the request for a target follows from the roll and the target's place: whoever submits it, however often and
 * however late, it is the same request, and the journal makes it once.
 */
export function requestIdOf(rollId: string, n: number, anew = 0): string {
  const hash = createHash("sha256").update(`${rollId} ${n} ${anew}`).digest();
  const letters = Array.from(hash.subarray(0, 20), (byte) => alphabet[byte % alphabet.length]);
  return `r-${letters.slice(0, 10).join("")}`;
}

export const isFinalState = (state: RollState): boolean =>
  state === "done" || state === "stopped" || state === "failed";

/** The targets are kept beside the record, because they are read seldom and may be many. */
export type RollTargets = readonly Target[];
