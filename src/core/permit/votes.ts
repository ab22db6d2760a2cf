/**
 * One person's vote on one request. `digest` is the fingerprint that they saw, and a vote on
 * another one doesn't count.
 */
export interface Vote {
  voterId: string;
  name: string;
  vote: "approve" | "deny";
  /** Milliseconds, Redis time. */
  at: number;
  digest: string;
  /** The indexes of the needs that it could count for, as of the vote. */
  meets?: readonly number[];
  /** Why the person denied the request. */
  reason?: string;
}

/**
 * The result of a vote (`core/request/ballot.ts`). `again`: others approved after it was judged.
 */
export type VoteOutcome =
  | { result: "counted"; approvals: number }
  | { result: "authorized"; approvals: number }
  | { result: "denied" }
  | { result: "again" }
  | { result: "refused"; why: VoteProblem };

/**
 * `unknown`: there is no such request, or the button has another fingerprint. `own`: the voter is
 * the requester. `over`: the request is already decided or running. `crowd`: each time that the
 * vote was judged, somebody else approved meanwhile.
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

/** The votes that approve. */
export const approvalsIn = <V extends Pick<Vote, "vote">>(votes: readonly V[]): readonly V[] =>
  votes.filter(({ vote }) => vote === "approve");

/** Counts the people whose approval has this fingerprint and who may still approve. */
export function countApprovals(
  votes: readonly Vote[],
  digest: string,
  mayApprove: ReadonlySet<string>,
): number {
  const counting = approvalsIn(votes).filter(
    (vote) => vote.digest === digest && mayApprove.has(vote.voterId),
  );
  return new Set(counting.map(({ voterId }) => voterId)).size;
}
