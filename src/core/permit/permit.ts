import type { Policy, ServiceRule } from "../../config/policy-file.ts";
import {
  type ChangeCommand,
  type Command,
  type Target,
  dottedName,
  restoresSnapshot,
  takesSnapshot,
} from "../../registry/define.ts";
import type { Input, Person, PersonIdentity } from "../../registry/invocation.ts";
import { type AccessList, lists, type Owned, placesSeen } from "./access.ts";
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
  refusal as refusalByRules,
  type VmWithin,
} from "./refusal.ts";

/**
 * This module answers whether a person may do something here, and who must approve it. It asks two
 * questions, because names must not be looked up for someone without the right:
 *
 *     mayAsk(person, command, place) ─► Asking
 *     permit(asking, targets)        ─► Permit
 *     submit(permit, origin)
 *
 * Only this module makes an `Asking` and a `Permit`. So nobody looks a name up without an `Asking`,
 * and nobody submits without a `Permit`. The gate asks both questions again right before the claim.
 * Callers may add facts to a permit, which make it stricter and never looser.
 */

/** The facts that decide: gatehouse.yml, and the ID of our workspace. */
export interface Rules {
  policy: Policy;
  ourTeamId: string;
  /** Names of people and groups by ID, for hints. */
  nameOf?: ((id: string) => string | undefined) | undefined;
}

/**
 * The snapshot that a request took of its target right before it replaced the data, as the journal
 * has it.
 */
export interface Saved {
  targetId: string;
  snapshotId: string;
}

/**
 * The right by which something is asked for. Each kind brings the facts that prove it, so no caller
 * lowers a guard by a mere claim.
 *
 * The basis isn't the `Origin`, which says what made the request and is stored with it. Most
 * origins have the usual basis, break-glass can be typed or come from a form, and a stored origin
 * only claims that its request undoes another one. So the gate derives the basis anew from the
 * origin and the journal (`basisOf`).
 */
export type Basis =
  /** The lists that the command's class requires. */
  | { kind: "usual" }
  /** The list `breakGlass` in place of the usual lists, in any channel, without approvals. */
  | { kind: "break-glass" }
  /** The request restores what was saved, so approvers may ask for it, too. */
  | { kind: "undo"; saved: Saved }
  /**
   * Gatehouse saves the target right before this request replaces its data. The right of this
   * request covers the snapshot.
   */
  | { kind: "safety"; before: { target: Pick<Target, "id">; input: Input; basis: Basis } };

export const usualBasis = { kind: "usual" } as const satisfies Basis;
export const breakGlassBasis = { kind: "break-glass" } as const satisfies Basis;

/** A command that a person asks for, and where. */
export interface Question<C extends Command = Command> {
  person: Person;
  command: C;
  /** Empty where there is no channel. */
  channelId: string;
  input?: Input | undefined;
  /** Undefined means the usual basis. */
  basis?: Basis | undefined;
  /**
   * Asks for an act about such a command that changes no target, such as a cancellation. The lists
   * alone decide, and no permit follows.
   */
  changesNothing?: boolean;
}

/** The targets of the command, whose names and IDs are known by now. */
export interface About {
  targets: readonly Target[];
  /** The input, if it is more exact than the one of the question, with IDs in place of names. */
  input?: Input | undefined;
  /**
   * A project's VMs, because rules cover those, too. Undefined when they can't be determined.
   */
  vms?: readonly VmWithin[] | undefined;
}

class AskingMade<C extends Command> {
  readonly #made = true;
  readonly person: Person;
  readonly command: C;
  readonly channelId: string;
  readonly input: Input;
  readonly basis: Basis;
  readonly changesNothing: boolean;
  readonly rules: Rules;

  constructor(question: Question<C>, { policy, ourTeamId, nameOf }: Rules) {
    const { person, command, channelId, input = {}, basis = usualBasis } = question;
    const { changesNothing = false } = question;
    this.person = person;
    this.command = command;
    this.channelId = channelId;
    this.input = input;
    this.basis = basis;
    this.changesNothing = changesNothing;
    this.rules = { policy, ourTeamId, nameOf };
  }

  static isMade(value: object): boolean {
    return #made in value && value.#made;
  }
}

/** Proves that this person may ask for this command here, so names may be looked up for them. */
export type Asking<C extends Command = Command> = AskingMade<C>;

class ServiceAskingMade {
  readonly #made = true;
  /** The program as people see it: a bot without any right that a person has. */
  readonly person: Person;

  constructor(person: Person) {
    this.person = person;
  }

  static isMade(value: object): boolean {
    return #made in value && value.#made;
  }
}

/**
 * Proves that this program may ask for a command, so names that it sees may be looked up for it. It
 * gets no permit.
 */
export type ServiceAsking = ServiceAskingMade;

class ViewingMade {
  readonly #made = true;
  readonly person: Person;

  constructor(person: Person) {
    this.person = person;
  }

  static isMade(value: object): boolean {
    return #made in value && value.#made;
  }
}

/**
 * Proves that this person may see names of VMs and projects, so a refusal may look up the ones that
 * they see. It permits nothing else.
 */
export type Viewing = ViewingMade;

/**
 * The approvals that a permit depends on. `raised` says in words why they are more than the rule
 * requires.
 */
export type Approvals = NeededApprovals & { raised?: string };

class PermitMade<C extends Command> {
  readonly #made = true;
  readonly asking: Asking<C>;
  readonly targets: readonly Target[];
  readonly input: Input;
  /** The rule in words, how many people must approve, and who they must be, by ID. */
  readonly approvals: Approvals;

  constructor(
    asking: Asking<C>,
    parts: { targets: readonly Target[]; input: Input; approvals: Approvals },
  ) {
    this.asking = asking;
    this.targets = parts.targets;
    this.input = parts.input;
    this.approvals = parts.approvals;
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

  /** Whether it skips approvals in an emergency, which someone reviews afterwards. */
  get isBreakGlass(): boolean {
    return isBreakGlass(this.asking.basis);
  }

  /**
   * The one target of a request. Throws for several targets, because each of them is a request of
   * its own.
   */
  get target(): Target {
    const [target, ...others] = this.targets;
    if (target && others.length === 0) return target;
    throw new Error(`a permit for ${this.targets.length} targets is for no single request`);
  }

  static isMade(value: object): boolean {
    return #made in value && value.#made;
  }
}

/** Proves that this person may run the command on these targets, once the approvals are given. */
export type Permit<C extends Command = ChangeCommand> = PermitMade<C>;

/** Someone for whom names may be looked up. */
export type Asker = Asking | ServiceAsking | Viewing;

/** Throws for an asking that this module didn't make, whatever a cast says. */
export function checkAsking(asking: Asker): void {
  if (![AskingMade, ServiceAskingMade, ViewingMade].some((made) => made.isMade(asking)))
    throw new Error("names are looked up only for someone who may ask");
}

/**
 * Asks whether names may be looked up to tell this person, who was refused, what would help them.
 * Undefined for someone who sees no names.
 */
export function mayView(person: Person, { policy, ourTeamId }: Rules): Viewing | undefined {
  return placesSeen(policy, person, ourTeamId).length > 0 ? new ViewingMade(person) : undefined;
}

/** Throws for a permit that this module didn't make, whatever a cast says. */
export function checkPermit(given: Permit<Command>): void {
  if (!PermitMade.isMade(given)) throw new Error("only a permit can be submitted");
}

type Refused = { refused: PolicyRefusal };

/** Asks whether this person may ask for the command here, before any name is looked up. */
export function mayAsk<C extends Command>(
  question: Question<C>,
  rules: Rules,
): { asking: Asking<C>; refused?: never } | (Refused & { asking?: never }) {
  const asking = new AskingMade(question, rules);
  const refused = accessRefusal(judgedBy(asking, { targets: [] }));
  return refused ? { refused } : { asking };
}

/** Returns the same asking, typed for a change. Throws for any other command. */
export function forChange({ command, rules, ...question }: Asking) {
  if (command.kind !== "change") throw new Error(`${command.name} changes no target`);
  return new AskingMade<ChangeCommand>({ ...question, command }, rules);
}

/**
 * Asks whether the person may run the command on these targets, and who must approve it. Throws for
 * an asking that this module didn't make.
 */
export function permit<C extends Command>(
  asking: Asking<C>,
  about: About,
): { permit: Permit<C>; refused?: never } | (Refused & { permit?: never }) {
  if (!AskingMade.isMade(asking)) throw new Error("only a person who may ask gets a permit");
  if (asking.changesNothing) throw new Error("an act that changes nothing needs no permit");
  const asked = judgedBy(asking, about);
  const refused = refusalByRules(asked);
  if (refused) return { refused };
  const { targets, input = asking.input } = about;
  const approvals = approvalsOf(asked);
  return { permit: new PermitMade(asking, { targets, input, approvals }) };
}

/**
 * Asks both questions about targets that are known already, because they belong to a stored request
 * or somebody only wants to know the answer. A refusal names the list over these targets that is
 * missing, also to someone who is in no list.
 */
export function askAndPermit<C extends Command>(
  question: Question<C>,
  about: About,
  rules: Rules,
): { permit: Permit<C>; refused?: never } | (Refused & { permit?: never }) {
  const { asking, refused } = mayAsk(question, rules);
  if (asking) return permit(asking, about);
  // A person who is in no list is in none over these targets either. The second refusal is more
  // exact.
  return {
    refused: refusalByRules(judgedBy(new AskingMade(question, rules), about)) ?? refused,
  };
}

/** A change of one target that a person may not make, for no other reason than the right. */
export interface LackedRight {
  command: ChangeCommand;
  input: Input;
  target: Target;
  /** IDs of the people and groups who may. */
  allowed: readonly string[];
}

/**
 * The change that someone else could make instead. Undefined unless a missing right is the only
 * obstacle.
 */
export function lackedBy(
  { command, input = {} }: Pick<Question, "command" | "input">,
  targets: readonly Target[],
  { allowed }: PolicyRefusal,
): LackedRight | undefined {
  const [target, ...others] = targets;
  if (!allowed || !target || others.length > 0 || target.id === "") return undefined;
  return command.kind === "change" ? { command, input, target, allowed } : undefined;
}

/** Judges each of several targets alone, because a rollout skips those that are refused. */
export function permitEach<C extends Command>(asking: Asking<C>, targets: readonly Target[]) {
  const judged = targets.map((target) => ({ target, ...permit(asking, { targets: [target] }) }));
  return {
    permits: judged.flatMap((result) => result.permit ?? []),
    refused: judged.flatMap(({ target, refused }) =>
      refused ? [{ target, refusal: refused }] : [],
    ),
  };
}

/**
 * Returns the targets that need approval, and the rule that requires it, because a rollout can't
 * wait for approvals. Undefined when no target needs any.
 */
export function needingApproval(
  permits: readonly Permit<Command>[],
): { targets: readonly Target[]; why: string } | undefined {
  const needing = permits.filter(({ approvals }) => approvals.required > 0);
  const [first] = needing;
  if (!first) return undefined;
  const targets = needing.flatMap((targetPermit) => targetPermit.targets);
  const { command, rules } = first.asking;
  return { targets, why: approvalRule(rules.policy, { command, targets }).why };
}

/**
 * Returns why the person may not do something about a request or a rollout on these targets that
 * changes none of them: cancel it, delay it, or record its outcome. Undefined when they may. Throws
 * for an asking about anything else.
 */
export function refusalByLists(
  asking: Asking,
  targets: readonly Target[],
): PolicyRefusal | undefined {
  checkAsking(asking);
  if (!asking.changesNothing) throw new Error("this may change something");
  return targets.length === 0 ? undefined : accessRefusal(judgedBy(asking, { targets }));
}

/**
 * Returns the permit for the request that waits for approvals in place of a command that answers
 * only its requester (`asRequest`). Undefined for other commands.
 */
export function permitAsRequest(given: Permit<Command>): Permit | undefined {
  const { command, person, channelId, input, basis, rules } = given.asking;
  if (command.kind !== "read" || !command.asRequest) return undefined;
  const question = { person, command: command.asRequest, channelId, input, basis };
  return new PermitMade(new AskingMade(question, rules), given);
}

/** Returns the same permit, typed for a change. Undefined for any other command. */
export function permitOfChange(given: Permit<Command>): Permit | undefined {
  if (given.command.kind !== "change") return undefined;
  return new PermitMade(forChange(given.asking), given);
}

/**
 * Makes the input of a permit exact: it gets the ID of a snapshot, or the values that will be kept.
 * Throws if a rule would judge the new input differently.
 */
export function specify<C extends Command>(given: Permit<C>, input: Input): Permit<C> {
  const { asking, targets, approvals } = given;
  const names = [given.input, input].map((candidate) =>
    newNameOf({ command: asking.command, targets, input: candidate }),
  );
  if (names[0] !== names[1] || isUndo(asking.basis, targets, input) !== isUndoOf(given))
    throw new Error("this input needs a permit of its own");
  return new PermitMade(asking, { targets, input, approvals });
}

/** Facts about a restore, as read now. */
export interface Restoring {
  /** Undefined when Gatehouse has no record of it, as for an ID that was typed by hand. */
  snapshot: { at: number; measurement?: string | undefined } | undefined;
  measurementNow: string | undefined;
  now: number;
}

/**
 * Adds one approval, if any is required, where a restore would change the measurement, or where its
 * snapshot is old or unknown. Such a restore can undo security fixes.
 */
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

/**
 * Returns the approvals that a change needs, whoever asks for it. Proposals of programs use it, and
 * the gate, which compares a record with the rules.
 */
export function approvalsFor(
  judged: Judged & { restoring?: Restoring },
  { policy, ourTeamId }: Rules,
): Approvals {
  const { command, input = {}, restoring } = judged;
  const approvals = approvalRule(policy, judged);
  if (!restoring) return approvals;
  return raisedFor({ command, input, ...restoring }, approvals, { policy, ourTeamId });
}

/** The part of a rollout that proves what was confirmed. */
interface ConfirmedRollout {
  state: string;
  record: {
    command: string;
    requester: PersonIdentity;
    channelId: string;
  };
  targets: readonly Pick<Target, "id">[];
}

/**
 * Makes the permit for one target of a rollout. Its requester was permitted to run the command on
 * all targets when they confirmed the rollout. A worker submits each target later and can't ask
 * Slack who the requester is. The gate asks again, as for any request. Throws for a command or a
 * target that nobody confirmed.
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
  requester: PersonIdentity;
  channelId: string;
  breakGlass?: boolean;
}

/**
 * Makes the permit for the snapshot that Gatehouse takes right before a permitted request replaces
 * data. The right of that request covers it. The gate asks again, as for any request. `take` tells a
 * later snapshot for the same request from the first. Throws for a command that takes no snapshot.
 */
export function permitSafetySnapshot(
  { id, target, input, requester, channelId, breakGlass = false }: ReplacingRequest,
  command: ChangeCommand,
  rules: Rules,
  take = 1,
): Permit {
  if (!takesSnapshot(command)) throw new Error(`${command.name} takes no snapshot`);
  const before = { target, input, basis: breakGlass ? breakGlassBasis : usualBasis };
  const basis: Basis = { kind: "safety", before };
  const own = { vm: target.id, name: `before-${id}${take > 1 ? `-${take}` : ""}` };
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
    requester: PersonIdentity;
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
 * Asks whether a program that gatehouse.yml names may use a command: to read, or to propose a
 * command that its `propose` names. Callers limit reads to the targets that its `view` names.
 * Undefined when it may not.
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
 * Whether to offer a command to this person: in some channel, on these targets, or on any target
 * when none is named. It permits nothing, because a press asks again.
 */
export function mayRun(
  asked: Pick<Question, "person" | "command"> & { targets?: readonly Target[] },
  { policy, ourTeamId }: Rules,
): boolean {
  const { person, command, targets = [] } = asked;
  return mayRunByRules({ policy, ourTeamId, person, command, targets });
}

/** Whether `protect` refuses the command for everyone. It isn't offered then. */
export function isProtected(judged: Judged, policy: Pick<Policy, "protect">): boolean {
  return protection(policy, judged) !== undefined;
}

/**
 * Whether this person is in an access list for all of these projects, or anywhere when none is
 * named.
 */
export function isListed(
  person: Person,
  list: AccessList,
  { policy, ourTeamId }: Rules,
  over: readonly Owned[] = [],
): boolean {
  return lists(policy, person, ourTeamId, over).includes(list);
}

/** Puts a question into the form in which rules judge it. */
function judgedBy(asking: Asking, { targets, input = asking.input, vms }: About): Asked {
  const { person, command, channelId, basis, changesNothing, rules } = asking;
  return {
    policy: rules.policy,
    ourTeamId: rules.ourTeamId,
    ...(rules.nameOf ? { nameOf: rules.nameOf } : {}),
    person,
    command,
    channelId,
    targets,
    input,
    vms,
    breakGlass: isBreakGlass(basis),
    isUndo: isUndo(basis, targets, input),
    isSafety: basis.kind === "safety",
    changesNothing,
  };
}

function isBreakGlass(basis: Basis): boolean {
  return (basis.kind === "safety" ? basis.before.basis : basis).kind === "break-glass";
}

/**
 * Whether it restores a snapshot that was saved of this very target, or saves the target right
 * before such a restore.
 */
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

const safetyNeedsNone = "a safety snapshot needs no approval of its own";

function approvalsOf(asked: Asked): Approvals {
  const approvals = approvalRule(asked.policy, asked);
  const none = { ...approvals, required: 0, votes: [] };
  if (asked.breakGlass === true) return { ...none, why: "break-glass skips approvals" };
  // Gatehouse takes this snapshot for a permitted request, and a snapshot changes nothing.
  if (asked.isSafety === true && asked.command.kind === "change" && takesSnapshot(asked.command))
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
