import { lineWords, type Operation, type Policy } from "../../config/policy-file.ts";
import { type Command, dottedName, targetArgument } from "../../registry/define.ts";
import {
  type Judged,
  judgedNames,
  type TargetByName,
  ownerOf,
  renamed,
  matchesAny,
  matchingTarget,
} from "./refusal.ts";
import { type Owned, teamsOf, named, rightsOver, andThey, isFullMember, whoAre } from "./access.ts";
import type { Person } from "../../registry/invocation.ts";
import { tellEvaluation } from "./evaluations.ts";
import { couldApprove, metBy } from "../../config/seats.ts";

export interface NeededApprovals {
  /** How many people other than the requester must approve; 0: it runs at once. */
  required: number;
  /** Who they must be. */
  votes: readonly VoteNeed[];
  expiresMs: number;
  /** Which entry of `approvals` decided, from 0; `default` when none matched. */
  index: number | "default";
  /** For the card and `/gatehouse why`: plain text. */
  why: string;
}

/**
 * The approvals that a request needs. The first matching entry of `approvals` decides; without one, destructive commands
 * need one approval and others none. Of several names the strictest decides. Reads and administration need none. A rename
 * needs what every rule asks that it leads out of: otherwise it would be the way round them.
 */
export function approvalRule(policy: Policy, judged: Judged): NeededApprovals {
  tellEvaluation("approvals", judged);
  const operation = operationOf(judged.command);
  const own = judgedNames(judged).map((target) => ruleFor(policy, operation, target));
  const [first = ruleFor(policy, operation), ...others] = [...own, ...rulesLeft(policy, judged)];
  const strictest = others.reduce(
    (a, b) =>
      b.required > a.required || (b.required === a.required && b.expiresMs < a.expiresMs) ? b : a,
    first,
  );
  const votes = allNeeds([first, ...others].map((one) => one.votes));
  return { ...strictest, votes, required: totalOf(votes) };
}

/** The rules, for any operation, that a target has under its name of now and hasn't under its new one. */
function rulesLeft(policy: Policy, judged: Judged): readonly NeededApprovals[] {
  return renamed(judged).flatMap(({ before, after }) =>
    policy.operations.flatMap((operation) => {
      const [now, then] = [before, after].map((target) => ruleFor(policy, operation, target));
      if (!now || !then || covers(then.votes, now.votes)) return [];
      return [{ ...now, why: `${now.why}, and ${after.because} escapes that rule` }];
    }),
  );
}

function ruleFor(policy: Policy, operation: Operation, target?: TargetByName): NeededApprovals {
  const { name, atLeast } = operation;
  const rule = ruleInFile(policy, operation, target);
  const required = Math.max(rule.required, atLeast);
  const isRaised = required > rule.required;
  const own = isRaised ? undefined : rule.votes;
  const votes = own ?? usualNeeds(policy, required, target && ownerOf(target));
  const why = isRaised ? `${name} always needs ${atLeast}` : rule.why;
  return { ...rule, required, votes, why };
}

/** `votes` only where an entry names who they must be. */
function ruleInFile(policy: Policy, operation: Operation, target?: TargetByName) {
  const { name, byDefault } = operation;
  const { approvalExpiresMs: expiresMs } = policy.timing;
  const usual = { index: "default", votes: undefined, expiresMs } as const;
  if (!operation.mayNeedApproval)
    return { ...usual, required: 0, why: `${name} changes nothing that needs approval` };
  const approvers = () => approversIn(policy, target && ownerOf(target));
  for (const [index, rule] of policy.approvals.entries()) {
    const { operations, targets: globs, required, votes } = rule;
    if (!matchesAny(operations, name)) continue;
    const meant = target && globs && matchingTarget(globs, target);
    if (globs && !meant) continue;
    const because = target?.because === undefined ? "" : ` (because of ${target.because})`;
    const on = meant ? ` on ${meant.glob}${because}` : "";
    const line = votes ? lineWords(policy, ["approvals", index]) : "";
    const from = votes || required === 0 ? "" : approvers();
    const why = `approvals[${index + 1}] in gatehouse.yml${line} requires ${required} for ${name}${on}${from}`;
    return { index, required, votes, expiresMs: rule.expiresMs, why };
  }
  const why = `no entry of approvals in gatehouse.yml matches ${name}`;
  const all = byDefault === 0 ? "" : `; destructive commands need one approval${approvers()}`;
  return { ...usual, required: byDefault, why: why + all };
}

/** `, of teams.payments.approve (line 12)`: where a team says who approves. */
function approversIn(policy: Policy, owner: Owned | undefined): string {
  const teams = owner ? teamsOf(policy, owner) : [];
  const places = teams.map(
    (team) => `teams.${team}.approve${lineWords(policy, ["teams", team, "approve"])}`,
  );
  return places.length === 0 ? "" : `, of ${places.join(" and ")}`;
}

/** Whether a rule of `approvals` can hold for it: it changes something, or opens a console. */
export function mayNeedApproval({ kind, class: of }: Pick<Command, "kind" | "class">): boolean {
  return kind === "change" || of === "secret";
}

/** For reading the rules of `approvals`. */
export function operationsOf(commands: readonly Command[]): readonly Operation[] {
  return commands.map(operationOf);
}

function operationOf(command: Command): Operation {
  return {
    name: dottedName(command),
    mayNeedApproval: mayNeedApproval(command),
    isOnVm: targetArgument(command)?.target === "vm",
    byDefault: command.class === "destroy" ? 1 : 0,
    atLeast: (command.kind === "change" && command.minApprovals) || 0,
  };
}

/** The rollback guard, because a restore can undo security fixes: why it needs one more approval, or undefined. */
export function rollbackReason(restore: {
  /** Undefined for an ID typed by hand. */
  snapshot: { at: number; measurement?: string } | undefined;
  measurementNow: string | undefined;
  maxAgeMs: number | undefined;
  now: number;
}): string | undefined {
  const { snapshot, measurementNow, maxAgeMs, now } = restore;
  if (!snapshot) return "Gatehouse has no record of this snapshot";
  if (
    measurementNow !== undefined &&
    snapshot.measurement !== undefined &&
    snapshot.measurement !== measurementNow
  ) {
    return "the snapshot was taken under another measurement";
  }
  if (maxAgeMs !== undefined && now - snapshot.at > maxAgeMs) {
    return "the snapshot is older than attestation.maxSnapshotAge in gatehouse.yml";
  }
  return undefined;
}

/** So many of these people must approve. */
export interface VoteNeed {
  /** User IDs, user group IDs, or `*`. */
  from: readonly string[];
  required: number;
}

/** Where no rule names who: those who may approve what is done to this project. */
export function usualNeeds(
  policy: Policy,
  required: number,
  project: Owned | undefined,
): readonly VoteNeed[] {
  if (required === 0) return [];
  const over = project ? rightsOver(policy, project) : [{ rights: policy.access }];
  return over.map(({ rights }) => ({ from: rights.approve, required }));
}

/** What a waiting request needs, as policy said at the request. Earlier versions left out what `access.approve` said. */
export function needsOf(
  { access }: Pick<Policy, "access">,
  { required, votes }: { required: number; votes?: readonly VoteNeed[] },
): readonly VoteNeed[] {
  return votes ?? [{ from: access.approve, required }];
}

/** Whether `access.approve` says who: then no word is needed on whom to ask. */
export function isUsual({ access }: Pick<Policy, "access">, votes: readonly VoteNeed[]): boolean {
  return covers([{ from: access.approve, required: totalOf(votes) }], votes);
}

/** One approval more, of anybody who is asked anyway. */
export function oneMore(votes: readonly VoteNeed[]): readonly VoteNeed[] {
  const [first, ...others] = votes;
  if (first && others.length === 0) return [{ ...first, required: first.required + 1 }];
  return [...votes, { from: [...new Set(votes.flatMap(({ from }) => from))], required: 1 }];
}

/**
 * What meets each of these rules at once. Within one rule each entry is a seat of its own, and a person fills one; where several
 * rules ask for the same people, the most that one of them asks for is enough.
 */
export function allNeeds(rules: readonly (readonly VoteNeed[])[]): readonly VoteNeed[] {
  const most = new Map<string, VoteNeed>();
  for (const rule of rules) {
    const seats = new Map<string, VoteNeed>();
    for (const need of rule) {
      const key = [...new Set(need.from)].toSorted().join(" ");
      const required = (seats.get(key)?.required ?? 0) + need.required;
      seats.set(key, { from: need.from, required });
    }
    for (const [key, need] of seats)
      if ((most.get(key)?.required ?? 0) < need.required) most.set(key, need);
  }
  return [...most.values()];
}

export function totalOf(needs: readonly VoteNeed[]): number {
  return needs.reduce((sum, { required }) => sum + required, 0);
}

/** Whether each of these needs is among those. */
export function covers(those: readonly VoteNeed[], needs: readonly VoteNeed[]): boolean {
  return totalOf(allNeeds([those, needs])) === totalOf(those);
}

/** The numbers of the needs that an approval of this full member counts for. */
export function meets(
  needs: readonly VoteNeed[],
  person: Pick<Person, "id" | "groups">,
): readonly number[] {
  return needs.flatMap((need, index) => (mayMeet(need, person) ? [index] : []));
}

/** Whether an approval of this full member counts for it. */
export function mayMeet(need: VoteNeed, person: Pick<Person, "id" | "groups">): boolean {
  return named(need.from, person);
}

/** The needs that are still open, each with what it lacks. */
export function stillNeeded(
  needs: readonly VoteNeed[],
  approvers: readonly Pick<Person, "id" | "groups">[],
): readonly VoteNeed[] {
  return lacking(needs, metBy(needs, approvers, mayMeet));
}

/** The needs of which fewer were `met` than are required, each with what it lacks. */
export function lacking<Need extends VoteNeed>(
  needs: readonly Need[],
  met: readonly number[],
): readonly Need[] {
  return needs.flatMap((need, index) => {
    const required = need.required - (met[index] ?? 0);
    return required > 0 ? [{ ...need, required }] : [];
  });
}

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
  "not-needed": "The approvals you could give have already been given",
};

/** Plain text for the voter. `missing`: whose approval is still needed, in words. */
export function voteRefusalText(why: VoteRefusal, missing = "someone else"): string {
  if (why !== "not-needed") return voteTexts[why];
  return `${voteTexts[why]}; this still needs ${missing}.`;
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
  const listed = needs.filter(({ everyone }) => !everyone);
  const { able: all, required, isEnough } = couldApprove(listed, ({ could }) => could);
  if (isEnough) return undefined;
  const cannot = new Set(listed.flatMap((need) => [...need.all])).intersection(unable);
  const unread = listed.flatMap(({ groups }) =>
    groups.filter((group) => membersOf(group) === undefined),
  );
  const barred = andThey("Named, but can't vote:", [...cannot], nameOf);
  const few = all.length > 0 ? andThey("Could approve:", all, nameOf) : "";
  const unknown = andThey("Slack doesn't say who is in:", [...new Set(unread)], nameOf);
  const isOne = listed.some((need) => need.isOne);
  const nobody =
    all.length > 0 || unread.length > 0 || cannot.size > 0
      ? ""
      : ` ${isOne ? "Nobody but you" : "Nobody"} could approve.`;
  return {
    text: `Not enough approvers: this needs ${required} other than you.`,
    hint: `${`${few}${barred}${unknown}${nobody}`.trim()} The team that runs Gatehouse can add people in gatehouse.yml.`,
  };
}

/** A need, and what those whom it names are called (`calledIn`). */
export interface NamedNeed extends Pick<VoteNeed, "required"> {
  called: readonly string[];
}

/** Stands for every full member, as `*` does. */
const everyone = "any full member";

/** Names of what a need lists: `@pay-leads`, `amir`. Never an ID, and never a mention. */
export function calledIn(
  { from }: Pick<VoteNeed, "from">,
  nameOf: (id: string) => string | undefined,
): readonly string[] {
  if (from.includes("*")) return [everyone];
  return [...new Set(from.map((id) => nameOf(id) ?? unnamed(id)))];
}

function unnamed(id: string): string {
  return id.startsWith("S") ? "a user group without a name" : "a person without a name";
}

export const numbers = ["none", "one", "two", "three", "four", "five"];
export const maxNamed = 4;

/** `one of @pay-leads and one of @security`, `two of @pay-leads or amir`, `amir`. */
export function needsInWords(needs: readonly NamedNeed[]): string {
  return joined(needs.map(needInWords), "and");
}

/** `Needs one of @pay-leads and one of @security.` */
export function needsWords(
  needs: readonly VoteNeed[],
  nameOf: (id: string) => string | undefined,
): string {
  const calledNeeds = needs.map((need) => ({ ...need, called: calledIn(need, nameOf) }));
  return `Needs ${needsInWords(calledNeeds)}.`;
}

function needInWords({ required, called }: NamedNeed): string {
  const many = numbers[required] ?? String(required);
  if (called[0] === everyone) return required === 1 ? everyone : `${many} full members`;
  // A group, and what stands for one, may have any number of members
  const arePeople = called.every((one) => !/^@|^a user group/.test(one));
  if (arePeople && called.length <= required) return joined(called, "and");
  return `${many} of ${joined(called, "or", maxNamed)}`;
}

/** `a`, `a and b`, `a, b, and c`; of many the first `most`, and how many more. */
export function joined(all: readonly string[], link: "and" | "or", most = all.length): string {
  const words = all.length > most ? [...all.slice(0, most), `${all.length - most} more`] : all;
  if (words.length < 3) return words.join(` ${link} `);
  return `${words.slice(0, -1).join(", ")}, ${link} ${words.at(-1)}`;
}
