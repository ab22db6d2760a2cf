import { UserError } from "../errors.ts";
import type { Markdown } from "../messages/message.ts";
import { placesSeen } from "../core/permit/access.ts";
import {
  type About,
  type Asking,
  type Permit,
  type Question,
  mayAsk,
  permit,
  permitEach,
  stopRefusal,
} from "../core/permit/permit.ts";
import type { PolicyRefusal } from "../core/permit/refusal.ts";
import type { ChangeCommand, Command, Target } from "../registry/define.ts";
import type { Person } from "../registry/invocation.ts";
import type { StoredRequest } from "../core/request/stored-request.ts";
import { frozenWords } from "../core/cards/asking.ts";
import { namesWithin } from "../core/submit/resolve-targets.ts";
import type { GatewayContext } from "./gateway-context.ts";

/** Refused by policy, and recorded in the audit trail. */
export class Refused extends UserError {}

/** What stands in the audit trail before the rule that refused it. */
interface Noted {
  notedAs?: string;
}

/**
 * The first question, for every kind of interaction: whether this person may ask for this here. Names are looked up after it, so
 * that a stranger learns none. Throws Refused.
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
  const { asking, refused } = mayAsk(question, gateway);
  return asking ?? refuse({ ...question, targets: [], ...noted }, refused, gateway);
}

/**
 * The second question: whether they may have it run on these targets, and who must approve it. A project's VMs are those known now,
 * unless others are named. The gate asks both again right before the claim. Throws Refused.
 */
export async function authorizeTargets<C extends Command>(
  asking: Asking<C>,
  about: About,
  gateway: GatewayContext,
  noted: Noted = {},
): Promise<Permit<C>> {
  const vmNames = about.vmNames ?? (await namesWithin(about.targets, gateway));
  const answer = permit(asking, { ...about, vmNames });
  if (answer.permit) return answer.permit;
  const { command, person, basis } = asking;
  const { targets } = about;
  return refuse({ command, person, basis, targets, ...noted }, answer.refused, gateway);
}

/** The same for each of several VMs alone, as a rollout asks it: those that are refused are recorded, and left out. */
export async function authorizeEach(
  asking: Asking<ChangeCommand>,
  targets: readonly Target[],
  gateway: GatewayContext,
) {
  const each = permitEach(asking, targets);
  const { command, person } = asking;
  for (const [rule, all] of Map.groupBy(each.refused, ({ by }) => by.rule))
    await noteRefusal({ command, person, targets: all.map((one) => one.target) }, rule, gateway);
  return each;
}

/** Both questions about a stored request, for somebody who acts on it. Throws Refused. */
export async function authorizeRequest(
  { record }: StoredRequest,
  command: ChangeCommand,
  person: Person,
  gateway: GatewayContext,
  noted: Noted = {},
): Promise<Permit> {
  const { target, channelId, children = [], input } = record;
  const vmNames = children.map((child) => child.name);
  const asking = await authorize({ person, command, input, channelId }, gateway, noted);
  return authorizeTargets(asking, { targets: [target], vmNames }, gateway, noted);
}

/**
 * Both questions for what ends or holds something. It is never refused because the policy is an old one, nor because of `protect`:
 * it changes no target. Throws Refused.
 */
export async function authorizeStop(
  { targets, ...question }: Question & { targets: readonly Target[] },
  gateway: GatewayContext,
): Promise<void> {
  const asking = await ask(question, gateway);
  const refused = stopRefusal(asking, targets);
  if (refused) await refuse({ ...question, targets }, refused, gateway);
}

/** Reads go on, and what stops changes. */
function isSafeUnderOldPolicy(command: Command): boolean {
  return command.class === "read" || (command.kind === "read" && command.approversToo === true);
}

/** Throws a UserError where other processes have a newer policy than this one: what it allows may be forbidden by now. */
export function refuseUnderOldPolicy({ standstill }: Pick<GatewayContext, "standstill">): void {
  if (standstill() === undefined) return;
  throw new UserError(
    "The policy changed, and this process of Gatehouse doesn't have the new one yet, so it changes nothing. Nothing was done.",
    "Try again in a minute. If it stays so, report to the team that runs Gatehouse: `/gatehouse status` says why.",
  );
}

/** What was refused, to whom. */
interface RefusedAct extends Noted, Pick<Question, "command" | "person" | "basis"> {
  targets: readonly Pick<Target, "id">[];
}

/** Records in the audit trail that a rule refused it. Throws Refused. */
export async function refuse(
  act: RefusedAct,
  { rule, text, hint }: Pick<PolicyRefusal, "rule" | "text"> & { hint?: string | undefined },
  gateway: Pick<GatewayContext, "store">,
): Promise<never> {
  await noteRefusal(act, rule, gateway);
  throw new Refused(text, hint);
}

/** Whether this person may see names of VMs and projects in pickers and on the Home tab. */
export function maySeeNames(person: Person, { policy, ourTeamId }: GatewayContext): boolean {
  return placesSeen(policy, person, ourTeamId).length > 0;
}

/** The one place that records a refusal in the audit trail. */
export async function noteRefusal(
  {
    command,
    person,
    targets,
    basis,
    notedAs = basis?.kind === "break-glass" ? "break-glass: " : "",
  }: RefusedAct,
  rule: string,
  { store }: Pick<GatewayContext, "store">,
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

/** Stands first in a form that is opened during a freeze. */
export async function frozenLine({ store }: GatewayContext): Promise<Markdown | undefined> {
  return frozenWords(await store.freezeState());
}
