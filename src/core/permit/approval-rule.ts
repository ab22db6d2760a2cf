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
import {
  type Owned,
  teamsOf,
  named,
  rightsOver,
  nameInSentence,
  isFullMember,
  whoAre,
} from "./access.ts";
import type { ListedPerson, Person } from "../../registry/invocation.ts";
import { publishEvaluation } from "./evaluations.ts";
import { couldApprove, metBy } from "../../config/seats.ts";

export interface NeededApprovals {
  /** How many people other than the requester must approve. With 0, the request runs at once. */
  required: number;
  /** The people who must approve. Each need must be met. */
  votes: readonly VoteNeed[];
  expiresMs: number;
  /** Which entry of `approvals` decided, from 0; `default` when none matched. */
  index: number | "default";
  /** The rule in plain text, for the card and `/gatehouse why`. */
  why: string;
}

/**
 * Returns the approvals that a request needs. The first entry of `approvals` that matches decides.
 * Without one, destructive commands need one approval, and others need none. Reads and
 * administration never need any. When several names are judged, the needs of all their rules must
 * be met, and the strictest rule gives the reason and the time limit. A rename must also meet the
 * needs of every rule that the target would escape. Otherwise it would be a way around those rules.
 */
export function approvalRule(policy: Policy, judged: Judged): NeededApprovals {
  publishEvaluation("approvals", judged);
  const operation = operationOf(judged.command);
  const own = judgedNames(judged).map((target) => ruleFor(policy, operation, target));
  const [first = ruleFor(policy, operation), ...others] = [...own, ...rulesEscaped(policy, judged)];
  const strictest = others.reduce(
    (a, b) =>
      b.required > a.required || (b.required === a.required && b.expiresMs < a.expiresMs) ? b : a,
    first,
  );
  const votes = allNeeds([first, ...others].map((rule) => rule.votes));
  return { ...strictest, votes, required: totalOf(votes) };
}

/**
 * Returns the rules, for any operation, that cover a target under its present name but not under
 * its new one.
 */
function rulesEscaped(policy: Policy, judged: Judged): readonly NeededApprovals[] {
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

/**
 * Returns the first entry that matches, or the default. `votes` is set only where an entry says who
 * must approve.
 */
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
    const line = votes ? lineWords(policy.approvals, ["approvals", index]) : "";
    const from = votes || required === 0 ? "" : approvers();
    const why = `approvals[${index + 1}] in gatehouse.yml${line} requires ${required} for ${name}${on}${from}`;
    return { index, required, votes, expiresMs: rule.expiresMs, why };
  }
  const unmatched = `no entry of approvals in gatehouse.yml matches ${name}`;
  if (byDefault === 0) return { ...usual, required: 0, why: unmatched };
  const from = approvers();
  const project = from === "" ? undefined : target && ownerOf(target).name;
  const where = project === undefined ? "" : ` in ${project}`;
  const why = `destructive commands${where} need one approval${from}; ${unmatched}`;
  return { ...usual, required: byDefault, why };
}

/**
 * Returns `, of teams.payments.approve (line 12)` where a team says who approves. Otherwise empty.
 */
function approversIn(policy: Policy, owner: Owned | undefined): string {
  const teams = owner ? teamsOf(policy, owner) : [];
  const places = teams.map(
    (team) => `teams.${team}.approve${lineWords(policy.teams, ["teams", team, "approve"])}`,
  );
  return places.length === 0 ? "" : `, of ${places.join(" and ")}`;
}

/**
 * Whether a rule of `approvals` can apply to a command: it changes something, or opens a console.
 */
export function mayNeedApproval({ kind, class: of }: Pick<Command, "kind" | "class">): boolean {
  return kind === "change" || of === "secret";
}

/** Describes commands for the code that reads the rules of `approvals`. */
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

/**
 * Returns why a restore needs one more approval, because it could undo security fixes. Undefined
 * when it needs none.
 */
export function rollbackReason(restore: {
  /** Undefined when Gatehouse has no record of it, as for an ID that was typed by hand. */
  snapshot: { at: number; measurement?: string | undefined } | undefined;
  measurementNow: string | undefined;
  maxAgeMs: number | undefined;
  now: number;
}): string | undefined {
  const { snapshot, measurementNow, maxAgeMs, now } = restore;
  if (!snapshot) return "Gatehouse has no record of this snapshot";
  if (snapshot.measurement !== measurementNow) {
    // A service that names no measurement, as of a stopped VM, must not take the approval away.
    if (measurementNow === undefined) return "the VM's measurement now isn't known";
    if (snapshot.measurement === undefined) return "the snapshot's measurement isn't known";
    return "the snapshot was taken under another measurement";
  }
  if (maxAgeMs !== undefined && now - snapshot.at > maxAgeMs) {
    return "the snapshot is older than attestation.maxSnapshotAge in gatehouse.yml";
  }
  return undefined;
}

/** `required` of these people must approve. */
export interface VoteNeed {
  /** User IDs, user group IDs, or `*`. */
  from: readonly string[];
  required: number;
}

/**
 * Returns the needs where no rule says who must approve: those who may approve changes of this
 * project. If two teams claim the project, the approvers of both are needed.
 */
function usualNeeds(
  policy: Policy,
  required: number,
  project: Owned | undefined,
): readonly VoteNeed[] {
  if (required === 0) return [];
  const over = project ? rightsOver(policy, project) : [{ rights: policy.access }];
  return over.map(({ rights }) => ({ from: rights.approve, required }));
}

/**
 * Returns the needs of a waiting request, as the policy had them when it was made. A request that
 * is stored without needs requires approvals from `access.approve`.
 */
export function needsOf(
  { access }: Pick<Policy, "access">,
  { required, votes }: { required: number; votes?: readonly VoteNeed[] },
): readonly VoteNeed[] {
  return votes ?? [{ from: access.approve, required }];
}

/**
 * Whether `access.approve` alone says who must approve. People then needn't be told whom to ask.
 */
export function isUsual({ access }: Pick<Policy, "access">, votes: readonly VoteNeed[]): boolean {
  return covers([{ from: access.approve, required: totalOf(votes) }], votes);
}

/** Adds one approval; anyone who is already eligible can give it. */
export function oneMore(votes: readonly VoteNeed[]): readonly VoteNeed[] {
  const [first, ...others] = votes;
  if (first && others.length === 0) return [{ ...first, required: first.required + 1 }];
  return [...votes, { from: [...new Set(votes.flatMap(({ from }) => from))], required: 1 }];
}

/**
 * Combines rules into needs that meet each of the rules. Within one rule, each entry is a seat of
 * its own, and a person fills one seat. When several rules ask for the same people, the largest
 * number that one of them asks for is enough.
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

/** Whether each of `needs` is among `all`, with at least as many approvals. */
export function covers(all: readonly VoteNeed[], needs: readonly VoteNeed[]): boolean {
  return totalOf(allNeeds([all, needs])) === totalOf(all);
}

/** Returns the indexes of the needs for which an approval of this full member counts. */
export function meets(needs: readonly VoteNeed[], person: ListedPerson): readonly number[] {
  return needs.flatMap((need, index) => (mayMeet(need, person) ? [index] : []));
}

/** Whether an approval of this full member counts for the need. */
export function mayMeet(need: VoteNeed, person: ListedPerson): boolean {
  return named(need.from, person);
}

/** Returns the needs that are still open, each with the number of approvals that it lacks. */
export function stillNeeded(
  needs: readonly VoteNeed[],
  approvers: readonly ListedPerson[],
): readonly VoteNeed[] {
  return lacking(needs, metBy(needs, approvers, mayMeet));
}

/**
 * Returns the needs that got fewer approvals (`met`, by index) than they require, each with the
 * number that it lacks.
 */
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
 * `own-request`: the voter is the requester; administrators are no exception. `asked-for-it`: the
 * voter, or another account of theirs, asked others to make the request. `own-account`,
 * `voted-before`: another account with the voter's e-mail address requested it, or approved it.
 * `not-one-of-us`: the voter is a guest, a bot, a member of another team, or deactivated.
 * `not-needed`: the needs that the voter could meet are met, and others are still open.
 */
type VoteRefusal =
  | "own-request"
  | "own-account"
  | "asked-for-it"
  | "voted-before"
  | "not-one-of-us"
  | "not-an-approver"
  | "not-needed";

type Account = Pick<Person, "id" | "email">;

/**
 * Whether two accounts belong to one person, as far as Slack tells. Without e-mail addresses, that
 * is certain only of one and the same account.
 */
export function isSamePerson(account: Account, other: Account): boolean {
  return account.id === other.id || (account.email !== undefined && account.email === other.email);
}

/**
 * Returns why a vote, for or against, doesn't count. It is checked at the vote, and again right
 * before the send.
 */
export function voteRefusal(vote: {
  /** The needs of the request. */
  votes: readonly VoteNeed[];
  /** The voter as Slack describes them now, and not when the button was drawn. */
  voter: Person;
  ourTeamId: string;
  requester: Account;
  /** Who asked others to make the request (`askerOf`). */
  asker?: Account | undefined;
  /**
   * Others who approved. If the groups of one are missing, they count only where a need names them
   * by ID or names everyone.
   */
  approvers?: readonly (Account & Partial<Pick<Person, "groups">>)[];
  /** A denial takes nobody's seat, so it is never `not-needed`. */
  isNo?: boolean;
}): VoteRefusal | undefined {
  const { votes, voter, ourTeamId, requester, asker, approvers = [], isNo = false } = vote;
  if (voter.id === requester.id) return "own-request";
  if (isSamePerson(voter, requester)) return "own-account";
  if (asker && isSamePerson(voter, asker)) return "asked-for-it";
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
  "asked-for-it": "You asked for this; someone else must decide.",
  "voted-before":
    "An account with your e-mail address already approved this; each person counts once.",
  "not-one-of-us": "Only full members of this workspace can approve or deny.",
  "not-an-approver":
    "You aren't among those who may approve this in gatehouse.yml, so your vote doesn't count.",
  "not-needed": "The approvals you could give have already been given",
};

/** Says it to the voter in plain text. `missing` says in words whose approval is still needed. */
export function voteRefusalText(why: VoteRefusal, missing = "someone else"): string {
  if (why !== "not-needed") return voteTexts[why];
  return `${voteTexts[why]}; this still needs ${missing}.`;
}

/**
 * Says why too few people other than the requester could approve. Undefined when enough could. A
 * group that Slack doesn't know or doesn't report counts as empty.
 */
export function approversRefusal(asked: {
  votes: readonly VoteNeed[];
  requesterId: string;
  membersOf: (groupId: string) => readonly string[] | undefined;
  /**
   * People who are named but can't vote: they aren't full members now, asked for the request, or
   * are another account of the requester.
   */
  unable?: ReadonlySet<string>;
  nameOf?: (id: string) => string | undefined;
}): { text: string; hint: string } | undefined {
  const { votes, requesterId, membersOf, nameOf, unable = new Set() } = asked;
  const needs = votes.map((need) => {
    const { everyone, users, groups } = whoAre(need.from);
    const members = groups.flatMap((group) => membersOf(group) ?? []);
    const all = new Set([...users, ...members]);
    const includesRequester = all.delete(requesterId);
    return { ...need, everyone, could: all.difference(unable), all, includesRequester, groups };
  });
  const listed = needs.filter(({ everyone }) => !everyone);
  const { able: all, required, isEnough } = couldApprove(listed, ({ could }) => could);
  if (isEnough) return undefined;
  const cannot = new Set(listed.flatMap((need) => [...need.all])).intersection(unable);
  const unread = listed.flatMap(({ groups }) =>
    groups.filter((group) => membersOf(group) === undefined),
  );
  const barred = nameInSentence("Named, but can't vote:", [...cannot], nameOf);
  const few = all.length > 0 ? nameInSentence("Could approve:", all, nameOf) : "";
  const unknown = nameInSentence("Slack doesn't say who is in:", [...new Set(unread)], nameOf);
  const includesRequester = listed.some((need) => need.includesRequester);
  const nobody =
    all.length > 0 || unread.length > 0 || cannot.size > 0
      ? ""
      : ` ${includesRequester ? "Nobody but you" : "Nobody"} could approve.`;
  return {
    text: `Not enough approvers: this needs ${required} other than you.`,
    hint: `${`${few}${barred}${unknown}${nobody}`.trim()} The team that runs Gatehouse can add people in gatehouse.yml.`,
  };
}

/** A need with the names of the people and groups that can meet it (`calledIn`). */
export interface NamedNeed extends Pick<VoteNeed, "required"> {
  called: readonly string[];
}

/** The name for every full member, whom `*` means. */
const everyone = "any full member";

/**
 * Returns the names of the people and groups that a need lists: `@pay-leads`, `amir`. It never
 * returns an ID or a mention.
 */
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

/**
 * Says needs in words: `one of @pay-leads and one of @security`, `two of @pay-leads or amir`,
 * `amir`.
 */
export function needsInWords(needs: readonly NamedNeed[]): string {
  return joined(needs.map(needInWords), "and");
}

/** Says needs in a sentence: `Needs one of @pay-leads and one of @security.` */
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
  // A group may have any number of members, also one whose name isn't known.
  const arePeople = called.every((name) => !/^@|^a user group/.test(name));
  if (arePeople && called.length <= required) return joined(called, "and");
  return `${many} of ${joined(called, "or", maxNamed)}`;
}

/**
 * Joins words: `a`, `a and b`, `a, b, and c`. If there are more than `most`, it ends with how many
 * more there are.
 */
export function joined(all: readonly string[], link: "and" | "or", most = all.length): string {
  const words = all.length > most ? [...all.slice(0, most), `${all.length - most} more`] : all;
  if (words.length < 3) return words.join(` ${link} `);
  return `${words.slice(0, -1).join(", ")}, ${link} ${words.at(-1)}`;
}
