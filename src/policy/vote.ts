import type { Person } from "../registry/invocation.ts";
import { andThey, isFullMember, whoAre } from "./access.ts";
import { metBy } from "../config/seats.ts";
import { mayMeet, stillNeeded, totalOf, type VoteNeed } from "./vote-needs.ts";

/**
 * `own-request`: even an administrator's own. `own-account`, `voted-before`: another account with the same e-mail address
 * requested it, or approved it. `not-one-of-us`: a guest, a bot, another team's member, or a deactivated account.
 * `not-needed`: everyone that they could approve for has been heard; others are still missing.
 */
type VoteRefusal =
  | "own-request"
  | "own-account"
  | "voted-before"
  | "not-one-of-us"
  | "not-an-approver"
  | "not-needed";

type Account = Pick<Person, "id" | "email">;

/** Whether two accounts belong to one person, as far as Slack says: without e-mail addresses, only when they are the same account. */
export function isSamePerson(one: Account, other: Account): boolean {
  return one.id === other.id || (one.email !== undefined && one.email === other.email);
}

/** Why a vote, for or against, doesn't count. Checked at the vote, and again right before the send. */
export function voteRefusal(vote: {
  /** Whose approvals the request needs. */
  votes: readonly VoteNeed[];
  /** As Slack describes them now, not when the button was drawn. */
  voter: Person;
  ourTeamId: string;
  requester: Account;
  /** Others who approved; those without groups are taken to meet nothing but what asks for them by ID. */
  approvers?: readonly (Account & Partial<Pick<Person, "groups">>)[];
  /** A no needs no place. */
  isNo?: boolean;
}): VoteRefusal | undefined {
  const { votes, voter, ourTeamId, requester, approvers = [], isNo = false } = vote;
  if (voter.id === requester.id) return "own-request";
  if (isSamePerson(voter, requester)) return "own-account";
  const others = approvers.filter(({ id }) => id !== voter.id);
  if (others.some((other) => isSamePerson(voter, other))) return "voted-before";
  if (!isFullMember(voter, ourTeamId)) return "not-one-of-us";
  if (!votes.some((need) => mayMeet(need, voter))) return "not-an-approver";
  const withGroups = others.map(({ id, groups = [] }) => ({ id, groups }));
  const [before, after] = [withGroups, [...withGroups, voter]].map((people) =>
    totalOf(stillNeeded(votes, people)),
  );
  return isNo || after !== before || before === 0 ? undefined : "not-needed";
}

const voteTexts: Readonly<Record<VoteRefusal, string>> = {
  "own-request": "You requested this; someone else must decide.",
  "own-account": "An account with your e-mail address requested this; someone else must decide.",
  "voted-before":
    "An account with your e-mail address already approved this; each person counts once.",
  "not-one-of-us": "Only full members of this workspace can approve or deny.",
  "not-an-approver":
    "You aren't among those who may approve this in gatehouse.yml, so your vote doesn't count.",
  "not-needed": "Those you could approve for have approved already",
};

/** Plain text for the voter. `missing`: whose approval is still needed, in words. */
export function voteRefusalText(refusal: VoteRefusal, missing = "someone else"): string {
  if (refusal !== "not-needed") return voteTexts[refusal];
  return `${voteTexts[refusal]}; this still needs ${missing}.`;
}

/**
 * Why too few people other than the requester could approve; undefined when enough could. A group that Slack doesn't know or
 * report has no members.
 */
export function approversRefusal(asked: {
  votes: readonly VoteNeed[];
  requesterId: string;
  membersOf: (groupId: string) => readonly string[] | undefined;
  /** Named, but no full members by now, or the requester's other account. */
  unable?: ReadonlySet<string>;
  nameOf?: (id: string) => string | undefined;
}): { text: string; hint: string } | undefined {
  const { votes, requesterId, membersOf, nameOf, unable = new Set() } = asked;
  const needs = votes.map((need) => {
    const { everyone, users, groups } = whoAre(need.from);
    const members = groups.flatMap((group) => membersOf(group) ?? []);
    const all = new Set([...users, ...members]);
    const isOne = all.delete(requesterId);
    return { ...need, everyone, could: all.difference(unable), all, isOne, groups };
  });
  const named = needs.filter(({ everyone }) => !everyone);
  const all = [...new Set(named.flatMap(({ could }) => [...could]))];
  const required = totalOf(named);
  const met = metBy(named, all, (need, id) => need.could.has(id));
  if (met.reduce((sum, one) => sum + one, 0) >= required) return undefined;
  const cannot = new Set(named.flatMap((need) => [...need.all])).intersection(unable);
  const unread = named.flatMap(({ groups }) =>
    groups.filter((group) => membersOf(group) === undefined),
  );
  const barred = andThey("Named, but can't vote", [...cannot], nameOf);
  const few = all.length > 0 ? andThey("Could approve", all, nameOf) : "";
  const unknown = andThey("Slack doesn't tell who is in", [...new Set(unread)], nameOf);
  const isOne = named.some((need) => need.isOne);
  const nobody =
    all.length > 0 || unread.length > 0 || cannot.size > 0
      ? ""
      : ` ${isOne ? "Nobody but you" : "Nobody"} could approve.`;
  return {
    text: `Not enough approvers: this needs ${required} other than you.`,
    hint: `${`${few}${barred}${unknown}${nobody}`.trim()} The team that runs Gatehouse can add people in gatehouse.yml.`,
  };
}
