/**
 * The life of a request. Every move between these is one compare-and-set in Redis that also writes the audit record and
 * marks what Slack must be told (`store.ts`).
 *
 *     draft ──► authorized ──► sending ──► accepted ──► done | failed | unclear
 *       │            ▲  ▲          │  ├──► rejected
 *       │            │  └──────────┘  └──► unclear ──► done | not-applied | unknown
 *       │            └── not-applied (a second send, where the effect allows it)
 *       └──► denied | expired | cancelled                    unknown ──► done | not-applied, by a named person
 *
 * - `draft`        parsed; waits for confirmation or approvals
 * - `authorized`   may be sent once
 * - `sending`      the claim is burned: a call may or may not be on the wire; only the owner may send, once
 * - `accepted`     the service said 2xx: the change is running, not done
 * - `unclear`      we don't know; reads decide, after a time of quiet
 * - `not-applied`  two stable reads say that nothing happened
 * - `unknown`      a person must look; the target stays locked for changes
 */
export const openStates = [
  "draft",
  "authorized",
  "sending",
  "accepted",
  "unclear",
  "not-applied",
  "unknown",
] as const;
export const finalStates = [
  "done",
  "failed",
  "rejected",
  "denied",
  "expired",
  "cancelled",
  "not-applied",
] as const;

export type State = (typeof openStates)[number] | (typeof finalStates)[number];

const moves: Record<State, readonly State[]> = {
  draft: ["authorized", "denied", "expired", "cancelled"],
  authorized: ["sending", "expired", "cancelled", "rejected", "done", "not-applied"],
  sending: ["accepted", "rejected", "unclear", "authorized", "done"],
  accepted: ["done", "failed", "unclear"],
  unclear: ["done", "failed", "not-applied", "unknown", "accepted", "rejected", "authorized"],
  "not-applied": ["authorized", "not-applied", "accepted", "rejected", "unclear", "done"],
  unknown: ["done", "not-applied", "failed"],
  done: [],
  failed: [],
  rejected: [],
  denied: [],
  expired: [],
  cancelled: [],
};

/** Whether the journal allows this move at all. A move to the same state only notes progress. */
export function mayMove(from: State, to: State): boolean {
  return from === to || moves[from].includes(to);
}

export function isKnownState(state: string): state is State {
  return Object.hasOwn(moves, state);
}
