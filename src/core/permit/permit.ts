import type { Policy, ServiceRule } from "../../config/policy-file.ts";
import {
  type ChangeCommand,
  type Command,
  type Target,
  dottedName,
  restoresSnapshot,
} from "../../registry/define.ts";
import type { Input, Person } from "../../registry/invocation.ts";
import { type AccessList, lists, type Owned } from "./access.ts";
import {
  approvalRule,
  type NeededApprovals,
  oneMore,
  rollbackReason,
  totalOf,
} from "./approval-rule.ts";
import {
  accessRefusal,
  type Asked,
  type Judged,
  matchesAny,
  mayRun as mayRunByRules,
  newNameOf,
  type PolicyRefusal,
  protection,
  refusal,
} from "./refusal.ts";

/**
 * May this person do this here, and who must agree? Two questions, because names must not be looked up for someone without the
 * right:
 *
 *     mayAsk(person, command, place) ─► Asking ─► permit(asking, targets) ─► Permit ─► submit(permit, origin)
 *
 * Only this module makes an `Asking` and a `Permit`, so nobody looks a name up without the one, or submits without the other. The
 * gate asks both again right before the claim. What a caller may add afterwards makes a permit stricter, never looser.
 */

/** What decides: gatehouse.yml, and which workspace is ours. */
export interface Rules {
  policy: Policy;
  ourTeamId: string;
  /** Names of people and groups by ID, for hints. */
  nameOf?: ((id: string) => string | undefined) | undefined;
}

/** The snapshot that a request took of its target right before it replaced the data, as the journal has it. */
export interface Saved {
  targetId: string;
  snapshotId: string;
}

/**
 * By which right it is asked for. Each kind brings the facts that prove it, so no caller lowers a guard by a word alone.
 *
 * It isn't the `Origin`, which says what made the request and is stored with it: most origins ask by the usual right, break-glass is asked for
 * in words and in forms, and a stored origin only claims that its request undoes another. The gate derives the basis from origin and
 * journal anew (`basisOf`).
 */
export type Basis =
  /** The lists that the command's class requires. */
  | { kind: "usual" }
  /** `breakGlass` in place of the usual lists, in any channel, without approvals. */
  | { kind: "break-glass" }
  /** It restores what was saved: approvers may ask for that too. */
  | { kind: "undo"; saved: Saved }
  /** Gatehouse saves the target right before this request replaces its data: the same right covers it. */
  | { kind: "safety"; before: { target: Pick<Target, "id">; input: Input; basis: Basis } };

export const usualBasis = { kind: "usual" } as const satisfies Basis;
export const breakGlassBasis = { kind: "break-glass" } as const satisfies Basis;

/** What a person asks for, and where. */
export interface Question<C extends Command = Command> {
  person: Person;
  command: C;
  /** Empty where there is no channel. */
  channelId: string;
  input?: Input | undefined;
  /** The usual one by default. */
  basis?: Basis | undefined;
}

/** On what: names and IDs are known by now. */
export interface About {
  targets: readonly Target[];
  /** Where it is more exact than what was asked: names by their IDs. */
  input?: Input | undefined;
  /** The names of a project's VMs, because rules cover those too; undefined when they can't be told. */
  vmNames?: readonly string[] | undefined;
}

class AskingMade<C extends Command> {
  readonly #made = true;
  readonly person: Person;
  readonly command: C;
  readonly channelId: string;
  readonly input: Input;
  readonly basis: Basis;
  readonly rules: Rules;

  constructor(question: Question<C>, { policy, ourTeamId, nameOf }: Rules) {
    const { person, command, channelId, input = {}, basis = usualBasis } = question;
    this.person = person;
    this.command = command;
    this.channelId = channelId;
    this.input = input;
    this.basis = basis;
    this.rules = { policy, ourTeamId, nameOf };
  }

  static isMade(value: object): boolean {
    return #made in value && value.#made;
  }
}

/** This person may ask for this command here: names may be looked up for them. */
export type Asking<C extends Command = Command> = AskingMade<C>;

class ServiceAskingMade {
  readonly #made = true;
  /** The program, as people see it: a bot, with no right that a person has. */
  readonly person: Person;

  constructor(person: Person) {
    this.person = person;
  }

  static isMade(value: object): boolean {
    return #made in value && value.#made;
  }
}

/** This program may ask for this: names that it sees may be looked up for it. It gets no permit. */
export type ServiceAsking = ServiceAskingMade;

/** The approvals that a permit depends on. `raised`: why they are more than the rule requires, in words. */
export type Approvals = NeededApprovals & { raised?: string };

class PermitMade<C extends Command> {
  readonly #made = true;
  readonly asking: Asking<C>;
  readonly targets: readonly Target[];
  readonly input: Input;
  /** The rule in words, how many must approve, and the seats: who they must be, by their IDs. */
  readonly approvals: Approvals;

  constructor(
    asking: Asking<C>,
    of: { targets: readonly Target[]; input: Input; approvals: Approvals },
  ) {
    this.asking = asking;
    this.targets = of.targets;
    this.input = of.input;
    this.approvals = of.approvals;
  }

  get person(): Person {
    return this.asking.person;
  }

  get command(): C {
    return this.asking.command;
  }

  get channelId(): string {
    return this.asking.channelId;
  }

  /** In an emergency, which someone reviews afterwards. */
  get isBreakGlass(): boolean {
    return isBreakGlass(this.asking.basis);
  }

  /** The one target of a request. Each of several is a request of its own. */
  get target(): Target {
    const [target, ...others] = this.targets;
    if (target && others.length === 0) return target;
    throw new Error(`a permit for ${this.targets.length} targets is for no single request`);
  }

  static isMade(value: object): boolean {
    return #made in value && value.#made;
  }
}

/** This person may have this run on these targets, once these approvals are given. */
export type Permit<C extends Command = ChangeCommand> = PermitMade<C>;

/** Throws where it isn't one that this module made, whatever a cast says. */
export function checkAsking(asking: Asking | ServiceAsking): void {
  if (!AskingMade.isMade(asking) && !ServiceAskingMade.isMade(asking))
    throw new Error("names are looked up only for someone who may ask");
}

/** Throws where it isn't one that this module made, whatever a cast says. */
export function checkPermit(given: Permit<Command>): void {
  if (!PermitMade.isMade(given)) throw new Error("only a permit can be submitted");
}

type Refused = { refused: PolicyRefusal };

/** Whether this person may ask for this here, before any name is looked up. */
export function mayAsk<C extends Command>(
  question: Question<C>,
  rules: Rules,
): { asking: Asking<C>; refused?: never } | (Refused & { asking?: never }) {
  const asking = new AskingMade(question, rules);
  const refused = accessRefusal(judgedBy(asking, { targets: [] }));
  return refused ? { refused } : { asking };
}

/** The same for a change. Throws for anything else. */
export function forChange({ person, command, channelId, input, basis, rules }: Asking) {
  if (command.kind !== "change") throw new Error(`${command.name} changes no target`);
  return new AskingMade<ChangeCommand>({ person, command, channelId, input, basis }, rules);
}

/** Whether they may have it run on these targets, and who must approve it. */
export function permit<C extends Command>(
  asking: Asking<C>,
  about: About,
): { permit: Permit<C>; refused?: never } | (Refused & { permit?: never }) {
  if (!AskingMade.isMade(asking)) throw new Error("only a person who may ask gets a permit");
  const asked = judgedBy(asking, about);
  const refused = refusal(asked);
  if (refused) return { refused };
  const { targets, input = asking.input } = about;
  const approvals = approvalsOf(asked);
  return { permit: new PermitMade(asking, { targets, input, approvals }) };
}

/**
 * Both questions about targets that are known already: those of a stored request, or what somebody only wants to know. A refusal
 * says which list over these targets is missing, also to someone who is in none.
 */
export function askAndPermit<C extends Command>(
  question: Question<C>,
  about: About,
  rules: Rules,
): { permit: Permit<C>; refused?: never } | (Refused & { permit?: never }) {
  const { asking, refused } = mayAsk(question, rules);
  if (asking) return permit(asking, about);
  // Whoever is in no list at all is in none over these
  return {
    refused: accessRefusal(judgedBy(new AskingMade(question, rules), about)) ?? refused,
  };
}

/** Each of several targets judged alone: a rollout skips those that are refused. */
export function permitEach<C extends Command>(asking: Asking<C>, targets: readonly Target[]) {
  const judged = targets.map((target) => ({ target, ...permit(asking, { targets: [target] }) }));
  return {
    permits: judged.flatMap((one) => one.permit ?? []),
    refused: judged.flatMap(({ target, refused }) => (refused ? [{ target, by: refused }] : [])),
  };
}

/** Those of several that need approval, and by which rule: a rollout can't wait for it. */
export function needingApproval(
  permits: readonly Permit<Command>[],
): { targets: readonly Target[]; why: string } | undefined {
  const needing = permits.filter(({ approvals }) => approvals.required > 0);
  const [first] = needing;
  if (!first) return undefined;
  const targets = needing.flatMap((one) => one.targets);
  const { command, rules } = first.asking;
  return { targets, why: approvalRule(rules.policy, { command, targets }).why };
}

/**
 * Why they may not end or hold what was asked for on these targets; undefined where they may. What `protect` says doesn't matter to
 * what changes nothing.
 */
export function stopRefusal(asking: Asking, targets: readonly Target[]): PolicyRefusal | undefined {
  checkAsking(asking);
  return targets.length === 0 ? undefined : accessRefusal(judgedBy(asking, { targets }));
}

/** The same permit for the request that stands for a command which answers only its asker. */
export function permitAsRequest(given: Permit<Command>): Permit | undefined {
  const { command, person, channelId, input, basis, rules } = given.asking;
  if (command.kind !== "read" || !command.asRequest) return undefined;
  const question = { person, command: command.asRequest, channelId, input, basis };
  return new PermitMade(new AskingMade(question, rules), given);
}

/** With the input made exact: a snapshot by its ID, the values that will be kept. Throws where a rule would look at the change. */
export function specify<C extends Command>(given: Permit<C>, input: Input): Permit<C> {
  const { asking, targets, approvals } = given;
  const names = [given.input, input].map((one) =>
    newNameOf({ command: asking.command, targets, input: one }),
  );
  if (names[0] !== names[1] || isUndo(asking.basis, targets, input) !== isUndoOf(given))
    throw new Error("this input needs a permit of its own");
  return new PermitMade(asking, { targets, input, approvals });
}

/** What a restore would bring back, as read now. */
export interface Restoring {
  /** Undefined for an ID typed by hand. */
  snapshot: { at: number; measurement?: string } | undefined;
  measurementNow: string | undefined;
  now: number;
}

/** Stricter by one approval where a restore would change the measurement or is old, because it can undo security fixes. */
export function raiseForRestore<C extends Command>(
  given: Permit<C>,
  restoring: Restoring,
): Permit<C> {
  const { asking, targets, input, approvals } = given;
  const { command, rules } = asking;
  const raised = raisedFor({ command, input, ...restoring }, approvals, rules);
  return raised === approvals
    ? given
    : new PermitMade(asking, { targets, input, approvals: raised });
}

/** What would have to be approved, whoever asks for it: a program proposes it, or a record is compared with the rules. */
export function approvalsFor(
  judged: Judged & { restoring?: Restoring },
  { policy, ourTeamId }: Rules,
): Approvals {
  const { command, input = {}, restoring } = judged;
  const approvals = approvalRule(policy, judged);
  if (!restoring) return approvals;
  return raisedFor({ command, input, ...restoring }, approvals, { policy, ourTeamId });
}

/** A rollout that was confirmed, as far as its targets go. */
interface ConfirmedRollout {
  state: string;
  record: {
    command: string;
    requester: Pick<Person, "id" | "teamId" | "name">;
    channelId: string;
  };
  targets: readonly Pick<Target, "id">[];
}

/**
 * For one target of a rollout. Its requester was permitted to run it on all of them when they confirmed it; a worker submits each
 * later and can't ask Slack who they are. The gate asks again, as for any request. Throws for what nobody confirmed.
 */
export function permitInRollout(
  { state, record, targets }: ConfirmedRollout,
  { command, target, input }: { command: ChangeCommand; target: Target; input: Input },
  rules: Rules,
): Permit {
  const isConfirmed = state !== "planned" && command.name === record.command;
  if (!isConfirmed || !targets.some(({ id }) => id === target.id))
    throw new Error(`nobody confirmed ${command.name} of ${target.id} in this rollout`);
  const { requester, channelId } = record;
  return permitAlreadyGiven({ requester, command, channelId, input, target }, rules, {
    why: "the rollout was confirmed without approvals",
  });
}

/** A request that replaces the data of its target. */
interface ReplacingRequest {
  id: string;
  target: Target;
  input: Input;
  requester: Pick<Person, "id" | "teamId" | "name">;
  channelId: string;
  breakGlass?: boolean;
}

/**
 * For the snapshot that Gatehouse takes right before a permitted request replaces data; it runs by the right of that request. The
 * gate asks again, as for any request. Throws for a command that takes no snapshot.
 */
export function permitSafetySnapshot(
  { id, target, input, requester, channelId, breakGlass = false }: ReplacingRequest,
  command: ChangeCommand,
  rules: Rules,
): Permit {
  if (!takesSnapshot(command)) throw new Error(`${command.name} takes no snapshot`);
  const before = { target, input, basis: breakGlass ? breakGlassBasis : usualBasis };
  const basis: Basis = { kind: "safety", before };
  const own = { vm: target.id, name: `before-${id}` };
  return permitAlreadyGiven({ requester, command, channelId, input: own, target, basis }, rules, {
    why: safetyNeedsNone,
  });
}

function permitAlreadyGiven(
  {
    requester: { id, teamId, name },
    target,
    input,
    ...question
  }: Omit<Question<ChangeCommand>, "person" | "input"> & {
    requester: Pick<Person, "id" | "teamId" | "name">;
    target: Target;
    input: Input;
  },
  rules: Rules,
  { why }: { why: string },
): Permit {
  const person: Person = { id, teamId, name, kind: "member", groups: [] };
  const asking = new AskingMade({ ...question, person, input }, rules);
  const { approvalExpiresMs: expiresMs } = rules.policy.timing;
  const approvals = { required: 0, votes: [], expiresMs, index: "default", why } as const;
  return new PermitMade(asking, { targets: [target], input, approvals });
}

/**
 * Whether a program that gatehouse.yml names may ask for this: to read what its `view` names, or to propose what its `propose` does.
 */
export function serviceMayAsk(
  program: Person,
  { propose }: ServiceRule,
  command: Command,
): ServiceAsking | undefined {
  const may =
    command.kind === "read"
      ? command.class === "read"
      : propose.some(({ operations }) => matchesAny(operations, dottedName(command)));
  return may ? new ServiceAskingMade(program) : undefined;
}

/**
 * Whether to offer a command to this person: in some channel, on these targets, or on some when none is named. It permits nothing:
 * a press asks again.
 */
export function mayRun(
  asked: Pick<Question, "person" | "command"> & { targets?: readonly Target[] },
  { policy, ourTeamId }: Rules,
): boolean {
  const { person, command, targets = [] } = asked;
  return mayRunByRules({ policy, ourTeamId, person, command, targets });
}

/** Whether `protect` refuses it, whoever asks: then it isn't offered. */
export function isProtected(judged: Judged, policy: Pick<Policy, "protect">): boolean {
  return protection(policy, judged) !== undefined;
}

/** Whether this person is in an access list: over these projects, or anywhere when none is named. */
export function isListed(
  person: Person,
  list: AccessList,
  { policy, ourTeamId }: Rules,
  over: readonly Owned[] = [],
): boolean {
  return lists(policy, person, ourTeamId, over).includes(list);
}

/** The question as the rules read it. */
function judgedBy(asking: Asking, { targets, input = asking.input, vmNames }: About): Asked {
  const { person, command, channelId, basis, rules } = asking;
  return {
    policy: rules.policy,
    ourTeamId: rules.ourTeamId,
    ...(rules.nameOf ? { nameOf: rules.nameOf } : {}),
    person,
    command,
    channelId,
    targets,
    input,
    vmNames,
    breakGlass: isBreakGlass(basis),
    isUndo: isUndo(basis, targets, input),
    isSafety: basis.kind === "safety",
  };
}

function isBreakGlass(basis: Basis): boolean {
  return (basis.kind === "safety" ? basis.before.basis : basis).kind === "break-glass";
}

/** Whether it restores what was saved of this very target, or saves that target right before. */
function isUndo(basis: Basis, targets: readonly Pick<Target, "id">[], input: Input): boolean {
  if (basis.kind === "safety") {
    const { before } = basis;
    return (
      targets.every(({ id }) => id === before.target.id) &&
      before.basis.kind === "undo" &&
      isUndo(before.basis, [before.target], before.input)
    );
  }
  if (basis.kind !== "undo") return false;
  const { targetId, snapshotId } = basis.saved;
  return input["snapshot"] === snapshotId && targets.every(({ id }) => id === targetId);
}

const isUndoOf = ({ asking, targets, input }: Permit<Command>) =>
  isUndo(asking.basis, targets, input);

const takesSnapshot = (command: Command) =>
  command.kind === "change" && command.on === "vm" && command.snapshot === "takes";

const safetyNeedsNone = "a safety snapshot needs no approval of its own";

function approvalsOf(asked: Asked): Approvals {
  const approvals = approvalRule(asked.policy, asked);
  const none = { ...approvals, required: 0, votes: [] };
  if (asked.breakGlass === true) return { ...none, why: "break-glass skips approvals" };
  // Made by Gatehouse for a permitted request; a snapshot changes nothing
  if (asked.isSafety === true && takesSnapshot(asked.command))
    return { ...none, why: safetyNeedsNone };
  return approvals;
}

function raisedFor(
  { command, input, ...restoring }: Restoring & { command: Command; input: Input },
  approvals: Approvals,
  { policy }: Rules,
): Approvals {
  const isRestore = command.kind === "change" && restoresSnapshot(command);
  if (!isRestore || approvals.required === 0 || input["snapshot"] === undefined) return approvals;
  const raised = rollbackReason({ ...restoring, maxAgeMs: policy.attestation.maxSnapshotAgeMs });
  if (raised === undefined) return approvals;
  const votes = oneMore(approvals.votes);
  return { ...approvals, votes, required: totalOf(votes), raised };
}
