import type { Policy } from "../config/policy-file.ts";
import type { Person } from "../registry/person.ts";
import { andThey, lists, whoMay } from "./access.ts";

/**
 * `own-request`: even an administrator's own. `own-account`, `voted-before`: another account with the same e-mail address
 * requested it, or approved it. `not-one-of-us`: a guest, a bot, another team's member, or a deactivated account.
 */
type VoteRefusal =
  | "own-request"
  | "own-account"
  | "voted-before"
  | "not-one-of-us"
  | "not-an-approver";

type Account = Pick<Person, "id" | "email">;

/** Whether two accounts belong to one person, as far as Slack says: without e-mail addresses, only when they are the same account. */
export function isSamePerson(one: Account, other: Account): boolean {
  return one.id === other.id || (one.email !== undefined && one.email === other.email);
}

/** Why a vote, for or against, doesn't count. Checked at the vote, and again right before the send. */
export function voteRefusal(vote: {
  policy: Policy;
  /** As Slack describes them now, not when the button was drawn. */
  voter: Person;
  ourTeamId: string;
  requester: Account;
  /** Others who approved. */
  approvers?: readonly Account[];
}): VoteRefusal | undefined {
  const { policy, voter, ourTeamId, requester, approvers = [] } = vote;
  if (voter.id === requester.id) return "own-request";
  if (isSamePerson(voter, requester)) return "own-account";
  if (approvers.some((other) => other.id !== voter.id && isSamePerson(voter, other)))
    return "voted-before";
  if (voter.kind !== "member" || voter.teamId !== ourTeamId || ourTeamId === "")
    return "not-one-of-us";
  return lists(policy, voter, ourTeamId).includes("approve") ? undefined : "not-an-approver";
}

const voteTexts: Readonly<Record<VoteRefusal, string>> = {
  "own-request": "You requested this; someone else must decide.",
  "own-account": "An account with your e-mail address requested this; someone else must decide.",
  "voted-before":
    "An account with your e-mail address already approved this; each person counts once.",
  "not-one-of-us": "Only full members of this workspace can approve or deny.",
  "not-an-approver":
    "You aren't listed under access.approve in gatehouse.yml, so your vote doesn't count.",
};

/** Plain text for the voter. */
export function voteRefusalText(refusal: VoteRefusal): string {
  return voteTexts[refusal];
}

/**
 * Why too few people other than the requester could approve; undefined when enough could. A group that Slack doesn't know or
 * report has no members.
 */
export function approversRefusal(asked: {
  policy: Policy;
  requesterId: string;
  required: number;
  membersOf: (groupId: string) => readonly string[] | undefined;
  nameOf?: (id: string) => string | undefined;
}): { text: string; hint: string } | undefined {
  const { policy, requesterId, required, membersOf, nameOf } = asked;
  const { everyone, users, groups } = whoMay(policy, "approve");
  if (everyone) return undefined;
  const unread = groups.filter((group) => membersOf(group) === undefined);
  const all = new Set([...users, ...groups.flatMap((group) => membersOf(group) ?? [])]);
  const isOne = all.delete(requesterId);
  if (all.size >= required) return undefined;
  const few = all.size > 0 ? andThey("Could approve", [...all], nameOf) : "";
  const unknown = andThey("Slack doesn't tell who is in", unread, nameOf);
  const nobody =
    all.size > 0 || unread.length > 0
      ? ""
      : ` ${isOne ? "Nobody but you" : "Nobody"} could approve.`;
  return {
    text: `Not enough approvers: this needs ${required} other than you.`,
    hint: `${`${few}${unknown}${nobody}`.trim()} The team that runs Gatehouse can add people to \`access.approve\` in gatehouse.yml.`,
  };
}
