import type { Journal } from "../core/request/journal.ts";
import { UserError } from "../errors.ts";
import type { Markdown } from "../messages/markdown.ts";
import {
  type About,
  type Asking,
  type LackedRight,
  type Permit,
  type Question,
  askAndPermit,
  lackedBy,
  mayAsk,
  mayView,
  permit,
  permitEach,
  refusalByLists,
} from "../core/permit/permit.ts";
import type { PolicyRefusal } from "../core/permit/refusal.ts";
import { withNames } from "../core/permit/with-names.ts";
import { commandWithRole } from "../registry/command-roles.ts";
import { type ChangeCommand, type Command, type Target, wordsFor } from "../registry/define.ts";
import type { Person } from "../registry/invocation.ts";
import type { StoredRequest } from "../core/request/stored-request.ts";
import { frozenWords } from "../core/cards/asking.ts";
import { targetsOfRefused, vmsWithin } from "../core/submit/resolve-targets.ts";
import { type GatewayContext, outdated } from "./gateway-context.ts";
import { offersAtRefusal } from "./service-keys.ts";

/** Refused by policy, and recorded in the audit trail. */
export class Refused extends UserError {
  /** What others may do instead. Undefined when nobody can be asked. */
  readonly lacked: LackedRight | undefined;

  constructor({ text, hint, smallPrint }: RefusalInWords, lacked?: LackedRight) {
    super(text, hint, smallPrint);
    this.lacked = lacked;
  }
}

type RefusalInWords = Pick<PolicyRefusal, "text" | "hint" | "smallPrint">;

interface Noted {
  /** Prefix of the rule in the audit trail's entry about a refusal. */
  notedAs?: string;
  /** The act isn't the command itself, or others were asked already, so nobody can be asked to do it. */
  asksNobody?: boolean;
}

/**
 * Asks policy the first question: may this person ask for this command here? Names are looked up
 * only afterwards, so a stranger learns none. Throws Refused, or UserError while this process has
 * an old policy.
 */
export async function authorize<C extends Command>(
  question: Question<C>,
  gateway: GatewayContext,
  noted: Noted = {},
): Promise<Asking<C>> {
  if (!isSafeUnderOldPolicy(question.command)) refuseUnderOldPolicy(gateway);
  return ask(question, gateway, noted);
}

async function ask<C extends Command>(
  question: Question<C>,
  gateway: GatewayContext,
  noted: Noted = {},
): Promise<Asking<C>> {
  const { asking } = mayAsk(question, gateway);
  if (asking) return asking;
  const { targets, refused } = await explainRefusal(question, gateway);
  const lacked = noted.asksNobody ? undefined : lackedBy(question, targets, refused);
  return refuse({ ...question, targets, ...noted }, refused, gateway, lacked);
}

/**
 * Says a refusal of the first question as exactly as this person may learn it: over the target, if
 * the words name one that they see, and with the names of those who may.
 */
async function explainRefusal(
  question: Question,
  gateway: GatewayContext,
): Promise<{ targets: readonly Target[]; refused: PolicyRefusal }> {
  const { refused } = await withNames(() => mayAsk(question, gateway), gateway);
  if (!refused) throw new Error(`${question.command.name} isn't refused`);
  const isForLackOfRight = refused.allowed !== undefined || refused.toldAs === "";
  if (!isForLackOfRight) return { targets: [], refused };
  const targets = await targetsSeen(question, gateway);
  const seen = await askOverOnly(question, targets, gateway);
  if (seen?.refused) return { targets: [seen.target], refused: seen.refused };
  const hint = refused.hint ?? askingOne(question, targets, refused, gateway);
  return { targets: [], refused: { ...refused, ...(hint === undefined ? {} : { hint }) } };
}

/** How to ask others, where several targets are named: others are asked about one at a time. */
function askingOne(
  { command, input = {} }: Question,
  [target, ...others]: readonly Target[],
  { allowed = [] }: PolicyRefusal,
  gateway: GatewayContext,
): string | undefined {
  if (command.kind !== "change" || !target || others.length === 0) return undefined;
  const lacked = { command, input, target, allowed };
  const canAsk = offersAtRefusal(lacked, gateway).length > 0;
  if (!canAsk) return undefined;
  return `Name one of them, and a button asks for it: \`/${wordsFor(command, input, target)}\`.`;
}

/** The targets that the words name and this person sees; none is looked up for someone who sees none. */
async function targetsSeen({ person, command, input = {} }: Question, gateway: GatewayContext) {
  const viewing = mayView(person, gateway);
  return viewing ? targetsOfRefused(viewing, { command, input }, gateway) : [];
}

/**
 * Asks both questions over the only one of these targets. Undefined alike for a name that nobody has
 * and for one that this person doesn't see.
 */
async function askOverOnly(
  question: Question,
  [target, ...others]: readonly Target[],
  gateway: GatewayContext,
) {
  if (!target || others.length > 0) return undefined;
  const about = { targets: [target], vms: await vmsWithin([target], gateway) };
  return { target, ...(await withNames(() => askAndPermit(question, about, gateway), gateway)) };
}

/**
 * Returns the right that a person lacks now for a change of a target that they see, and who has it.
 * Undefined when they have it themselves. Throws UserError when others couldn't do it either, and
 * for a target that they don't see.
 */
export async function lackedRight(
  question: Question,
  gateway: GatewayContext,
): Promise<LackedRight | undefined> {
  const seen = await askOverOnly(question, await targetsSeen(question, gateway), gateway);
  if (!seen) throw outdated();
  const { target, refused } = seen;
  const lacked = refused && lackedBy(question, [target], refused);
  if (refused && !lacked) throw new UserError(refused.text, refused.hint, refused.smallPrint);
  return lacked;
}

/**
 * Asks policy the second question: may the command run on these targets, and who must approve it?
 * Unless `about.vms` is given, a project's VMs are those known now. The gate asks both
 * questions again right before the claim. Throws Refused.
 */
export async function authorizeTargets<C extends Command>(
  asking: Asking<C>,
  about: About,
  gateway: GatewayContext,
  noted: Noted = {},
): Promise<Permit<C>> {
  const vms = about.vms ?? (await vmsWithin(about.targets, gateway));
  const answer = await withNames(() => permit(asking, { ...about, vms }), gateway);
  if (answer.permit) return answer.permit;
  const { command, person, basis } = asking;
  const { targets, input = asking.input } = about;
  const { refused } = answer;
  const lacked = noted.asksNobody ? undefined : lackedBy({ command, input }, targets, refused);
  return refuse({ command, person, basis, targets, ...noted }, refused, gateway, lacked);
}

/**
 * Asks the second question for each of several VMs alone, as a rollout does. Refused VMs are
 * recorded in the audit trail and left out of the permits.
 */
export async function authorizeEach(
  asking: Asking<ChangeCommand>,
  targets: readonly Target[],
  gateway: GatewayContext,
) {
  const each = permitEach(asking, targets);
  const { command, person } = asking;
  for (const [rule, all] of Map.groupBy(each.refused, ({ refusal }) => refusal.rule))
    await noteRefusal(
      { command, person, targets: all.map((refused) => refused.target) },
      rule,
      gateway,
    );
  return each;
}

/** Asks both questions about a stored request, for a person who acts on it. Throws Refused. */
export async function authorizeRequest(
  { record }: StoredRequest,
  command: ChangeCommand,
  person: Person,
  gateway: GatewayContext,
  noted: Noted = {},
): Promise<Permit> {
  const { target, channelId, children = [], input } = record;
  const how = { ...noted, asksNobody: true };
  const asking = await authorize({ person, command, input, channelId }, gateway, how);
  return authorizeTargets(asking, { targets: [target], vms: children }, gateway, how);
}

/**
 * Asks whether the lists allow an act that changes no target, such as a cancellation. An old policy,
 * `channels`, or `protect` never refuses it. Throws Refused.
 */
export async function authorizeByLists(
  about: Pick<Question, "person" | "command" | "input"> & { targets: readonly Target[] },
  gateway: GatewayContext,
  noted: Noted = {},
): Promise<void> {
  const { targets, ...asked } = about;
  const question = { ...asked, channelId: "", changesNothing: true };
  const asking = await ask(question, gateway, { ...noted, asksNobody: true });
  const refused = refusalByLists(asking, targets);
  if (refused) await refuse({ ...question, ...noted, targets }, refused, gateway);
}

/** Asks the lists about a stored request, for a person who cancels, delays, or watches it. */
export async function authorizeOnRequest(
  { record: { target, input } }: StoredRequest,
  command: ChangeCommand,
  person: Person,
  gateway: GatewayContext,
  noted: Noted = {},
): Promise<void> {
  await authorizeByLists({ command, input, person, targets: [target] }, gateway, noted);
}

/**
 * Asks whether a person may record how a request ended. The rules of today for changes don't matter,
 * because it changes no target, and an outcome that nobody can record would lock its target for
 * good. An old policy refuses it, because its lists may be old. Throws Refused and UserError.
 */
export async function authorizeRecording(
  request: StoredRequest,
  command: ChangeCommand,
  person: Person,
  gateway: GatewayContext,
): Promise<void> {
  refuseUnderOldPolicy(gateway);
  await authorizeOnRequest(request, command, person, gateway, { notedAs: "verdict: " });
}

/**
 * Reads stay allowed under an old policy, and so do commands that approvers may run too, such as a
 * freeze.
 */
function isSafeUnderOldPolicy(command: Command): boolean {
  return command.class === "read" || (command.kind === "read" && command.approversToo === true);
}

/**
 * Throws a UserError while other processes have a newer policy than this one: the new policy may
 * forbid what this one allows.
 */
export function refuseUnderOldPolicy({ standstill }: { standstill(): string | undefined }): void {
  if (standstill() === undefined) return;
  throw new UserError(
    "The policy changed, and this process of Gatehouse doesn't have the new one yet, so it changes nothing. Nothing was done.",
    "Try again in a minute. If it stays so, report to the team that runs Gatehouse: `/gatehouse status` says why.",
  );
}

/**
 * Throws Refused while changes are frozen. A freeze that begins later cancels the request at the
 * gate, or ends in the claim.
 */
export async function refuseWhileFrozen(act: RefusedAct, gateway: GatewayContext): Promise<void> {
  const freeze = await gateway.store.freezeState();
  if (!freeze) return;
  const { by: freezer, reason } = freeze;
  const ender = commandWithRole(gateway.commands, "ends-freeze");
  const text = `All changes are frozen by ${freezer}${reason && `: ${reason.replace(/\.$/, "")}`}. Nothing was done.`;
  const hint = `Request again ${ender ? `after \`/${ender.name}\`` : "once the freeze has ended"}.`;
  await refuse(act, { rule: "freeze", text, hint }, gateway);
}

/** An act that a rule refused, as the audit trail records it. */
interface RefusedAct
  extends Pick<Noted, "notedAs">, Pick<Question, "command" | "person" | "basis"> {
  targets: readonly Pick<Target, "id">[];
}

/** Records the refusal in the audit trail, then throws Refused. */
export async function refuse(
  act: RefusedAct,
  refused: PolicyRefusal,
  gateway: Pick<GatewayContext, "store">,
  lacked?: LackedRight,
): Promise<never> {
  await noteRefusal(act, refused.rule, gateway);
  throw new Refused(refused, lacked);
}

/** Whether this person may see names of VMs and projects in pickers and on the Home tab. */
export function maySeeNames(person: Person, gateway: GatewayContext): boolean {
  return mayView(person, gateway) !== undefined;
}

/** Records a refusal in the audit trail. Every refusal by policy passes here. */
export async function noteRefusal(
  {
    command,
    person,
    targets,
    basis,
    notedAs = basis?.kind === "break-glass" ? "break-glass: " : "",
  }: RefusedAct,
  rule: string,
  { store }: { store: Journal },
): Promise<void> {
  await store.note({
    what: "refusal",
    who: person.id,
    team: person.teamId,
    command: command.name,
    targets: targets.map(({ id }) => id),
    rule: `${notedAs}${rule}`,
  });
}

/** The line that a form begins with during a freeze; undefined while changes aren't frozen. */
export async function frozenLine({ store }: { store: Journal }): Promise<Markdown | undefined> {
  return frozenWords(await store.freezeState());
}
