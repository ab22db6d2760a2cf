/** One person's word on one request. `digest` is what they saw: a vote on anything else doesn't count. */
export interface Vote {
  voterId: string;
  name: string;
  vote: "approve" | "deny";
  /** Milliseconds, Redis time. */
  at: number;
  digest: string;
}

/** What came of a vote (the script of `requests/vote-script.ts`). */
export type VoteOutcome =
  | { is: "counted"; approvals: number }
  | { is: "authorized"; approvals: number }
  | { is: "denied" }
  | { is: "refused"; why: VoteProblem };

/**
 * `unknown` no such request, or the button shows another digest; `expired`; `own` the requester's; `twice`; `over` it is
 * decided or running already.
 */
export type VoteProblem = "unknown" | "expired" | "own" | "twice" | "over";

const problems: Readonly<Record<VoteProblem, string>> = {
  unknown: "This button doesn't belong to a request that can be voted on. Nothing was counted.",
  expired: "Nobody decided in time, so it expired. *Ask again* makes a new request.",
  own: "You asked for this yourself: somebody else has to decide.",
  twice: "Your vote counts already.",
  over: "This is decided already.",
};

export function voteProblemText(problem: VoteProblem): string {
  return problems[problem];
}

/** Approvals that count, given who of the voters still may approve today. */
export function countApprovals(
  votes: readonly Vote[],
  digest: string,
  mayApprove: ReadonlySet<string>,
): number {
  const people = new Set(
    votes
      .filter((vote) => vote.vote === "approve" && vote.digest === digest)
      .map(({ voterId }) => voterId)
      .filter((id) => mayApprove.has(id)),
  );
  return people.size;
}
