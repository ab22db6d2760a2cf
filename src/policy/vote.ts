import type { Policy } from "../policy-file.ts";
import type { Person } from "../registry/person.ts";
import { lists, whoMay } from "./access.ts";

/**
 * Why a vote doesn't count (reliability.md section 4). `own-request`: whoever asked never approves, not even as an
 * administrator. `not-one-of-us`: a guest, a bot, somebody of another team, or a deactivated account.
 */
export type VoteRefusal = "own-request" | "not-one-of-us" | "not-an-approver";

export interface Vote {
  policy: Policy;
  /** As Slack describes them now, not when the button was drawn. */
  voter: Person;
  ourTeamId: string;
  requesterId: string;
}

/** Whether this person's word counts, for or against. Asked at the vote, and again for each vote right before the send. */
export function voteRefusal({
  policy,
  voter,
  ourTeamId,
  requesterId,
}: Vote): VoteRefusal | undefined {
  if (voter.id === requesterId) return "own-request";
  if (voter.kind !== "member" || voter.teamId !== ourTeamId || ourTeamId === "")
    return "not-one-of-us";
  return lists(policy, voter, ourTeamId).includes("approve") ? undefined : "not-an-approver";
}

const voteTexts: Readonly<Record<VoteRefusal, string>> = {
  "own-request": "You asked for this yourself: somebody else has to decide.",
  "not-one-of-us": "Only full members of our workspace can approve or deny.",
  "not-an-approver": "You are not in access.approve of gatehouse.yml, so your vote doesn't count.",
};

/** Plain text for the voter. */
export function voteRefusalText(refusal: VoteRefusal): string {
  return voteTexts[refusal];
}

export interface PossibleApprovers {
  /** False: asking is pointless, nobody could complete it. */
  enough: boolean;
  /** Ids of people who could approve; `everyone` when `approve` holds `*`. */
  who: readonly string[] | "everyone";
}

/**
 * Whether enough people other than the requester could approve. `membersOf` tells who is in a group now, undefined when
 * Slack doesn't know it or doesn't answer: then nobody is.
 */
export function couldApprove(asked: {
  policy: Policy;
  requesterId: string;
  required: number;
  membersOf: (groupId: string) => readonly string[] | undefined;
}): PossibleApprovers {
  const { policy, requesterId, required, membersOf } = asked;
  const { everyone, users, groups } = whoMay(policy, "approve");
  if (everyone) return { enough: true, who: "everyone" };
  const all = new Set([...users, ...groups.flatMap((group) => membersOf(group) ?? [])]);
  all.delete(requesterId);
  return { enough: all.size >= required, who: [...all] };
}
