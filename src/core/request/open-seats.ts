import type { Vote } from "../permit/votes.ts";
import type { Policy } from "../../config/policy-file.ts";
import { metBy } from "../../config/seats.ts";
import {
  type VoteNeed,
  lacking,
  meets,
  needsOf,
  totalOf,
  voteRefusal,
} from "../permit/approval-rule.ts";
import type { Person } from "../../registry/invocation.ts";
import { askerOf } from "./origin.ts";
import type { RequestRecord } from "./record.ts";
import type { StoredRequest } from "./stored-request.ts";
import { approvalsIn } from "../permit/votes.ts";

/**
 * Returns the needs that the approvals haven't met, each with the number of people that it lacks,
 * as of the votes.
 */
function openNeeds<Need extends VoteNeed>(
  needs: readonly Need[],
  { votes }: { votes: readonly Pick<Vote, "vote" | "meets">[] },
): readonly Need[] {
  const yes = approvalsIn(votes);
  // A person who could take several seats counts for the narrowest need, so that the needs named as
  // missing are ones that others can meet.
  const narrowFirst = needs
    .map((need, index) => ({ ...need, index }))
    .toSorted((a, b) => breadthOf(a) - breadthOf(b));
  const met = metBy(narrowFirst, yes, ({ index }, vote) => vote.meets?.includes(index) ?? true);
  const places = new Map(narrowFirst.map(({ index }, place) => [index, met[place] ?? 0]));
  return lacking(
    needs,
    needs.map((_, index) => places.get(index) ?? 0),
  );
}

/** Who asked others to make a request, as an account that a vote is judged by (`voteRefusal`). */
export function askerIn(record: Pick<RequestRecord, "origin">): { asker?: { id: string } } {
  const id = askerOf(record);
  return id === undefined ? {} : { asker: { id } };
}

/** Orders needs: single people are fewer than groups, and everyone is the most. */
function breadthOf({ from }: VoteNeed): number {
  if (from.includes("*")) return Number.MAX_SAFE_INTEGER;
  return from.reduce((sum, entry) => sum + (entry.startsWith("S") ? 1_000 : 1), 0);
}

/**
 * Returns the open needs with the names of those who could meet them. Undefined where
 * `access.approve` says who.
 */
export function namedNeeds({ record, votes }: Pick<StoredRequest, "record" | "votes">) {
  const { votes: needs, needs: named } = record.approval ?? {};
  if (!needs || !named) return undefined;
  const all = needs.map((need, index) => ({ ...need, called: [], ...named[index] }));
  return { all, open: openNeeds(all, { votes }) };
}

/**
 * Whether the request waits for this person: they may vote on it, haven't voted, and their vote
 * would take one more seat.
 */
export function awaitsVoteOf(
  person: Person,
  request: StoredRequest,
  { policy, ourTeamId }: { policy: Policy; ourTeamId: string },
): boolean {
  const { record, state, votes: given } = request;
  if (state !== "draft" || !record.approval) return false;
  const votes = needsOf(policy, record.approval);
  const { requester } = record;
  if (voteRefusal({ votes, voter: person, ourTeamId, requester, ...askerIn(record) })) return false;
  if (given.some(({ voterId }) => voterId === person.id)) return false;
  // Another approver may count for another need, and so leave their seat to this person.
  const vote = { vote: "approve", meets: meets(votes, person) } as const;
  const after = openNeeds(votes, { votes: [...given, vote] });
  return totalOf(after) < totalOf(openNeeds(votes, request));
}
