/** One person's vote on one request. `digest` is the fingerprint they saw: a vote on anything else doesn't count. */
export interface Vote {
  voterId: string;
  name: string;
  vote: "approve" | "deny";
  /** Milliseconds, Redis time. */
  at: number;
  digest: string;
  /** The numbers of the needs that it could count for, as of the vote. */
  meets?: readonly number[];
  /** Why they denied it. */
  reason?: string;
}

/** The result of a vote (`core/request/ballot.ts`). `again`: others approved since it was judged. */
export type VoteOutcome =
  | { is: "counted"; approvals: number }
  | { is: "authorized"; approvals: number }
  | { is: "denied" }
  | { is: "again" }
  | { is: "refused"; why: VoteProblem };

/**
 * `unknown`: no such request, or the button has another fingerprint; `own`: the requester's; `over`: already decided or
 * running; `crowd`: each time that it was judged, somebody else approved meanwhile.
 */
export type VoteProblem = "unknown" | "expired" | "own" | "twice" | "over" | "crowd";

export const voteProblemTexts: Readonly<Record<VoteProblem, string>> = {
  unknown: "This button doesn't belong to a request that can be voted on. Nothing was counted.",
  expired: "No one decided in time, so the request expired. Request it again.",
  own: "You requested this; someone else must decide.",
  twice: "You already voted.",
  over: "This is already decided.",
  crowd: "Others voted at the same moment, so your vote was not counted. Press again.",
};

/** How many approvals count, given which voters may still approve. */
export function countApprovals(
  votes: readonly Vote[],
  digest: string,
  mayApprove: ReadonlySet<string>,
): number {
  const counting = votes.filter(
    (one) => one.vote === "approve" && one.digest === digest && mayApprove.has(one.voterId),
  );
  return new Set(counting.map(({ voterId }) => voterId)).size;
}
