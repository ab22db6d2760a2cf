import { UserError } from "../../errors.ts";
import { placesSeen } from "../../policy/access.ts";
import { decide } from "../../policy/decide.ts";
import { accessRefusal, type Asked, type PolicyRefusal } from "../../policy/refusal.ts";
import type { Command } from "../../registry/define.ts";
import type { Person } from "../../registry/invocation.ts";
import type { GatewayContext } from "./gateway-context.ts";
import { namesWithin } from "../../requests/submit/resolve.ts";

/** `vmNames` are those known now, unless others are meant. */
export interface AskedFor extends Omit<Asked, keyof Rules> {
  command: Command;
  /** It ends or holds something: never refused because the policy is an old one. */
  isStop?: boolean;
  /** Prefix of the rule in the audit trail. */
  notedAs?: string;
}

/** What break-glass asks for. */
export const emergency = { breakGlass: true, notedAs: "break-glass: " } as const;

/** Refused by policy, and recorded in the audit trail. */
export class Refused extends UserError {}

/**
 * Whether this person may run this here, on these targets, for every kind of interaction; the gate checks it again right
 * before the claim. Names are resolved after the person is judged, so that a stranger learns none. Throws Refused.
 */
export async function authorize(asked: AskedFor, gateway: GatewayContext): Promise<void> {
  if (!isSafeUnderOldPolicy(asked)) refuseUnderOldPolicy(gateway);
  await authorizeRights({ ...asked, targets: [] }, gateway);
  if (asked.targets.length === 0) return;
  const vmNames = asked.vmNames ?? (await namesWithin(asked.targets, gateway));
  await stop(decide({ ...rules(asked, gateway), vmNames }).refused, asked, gateway);
}

/** Rights over the targets alone: what `protect` says doesn't matter to what ends something. */
export async function authorizeRights(asked: AskedFor, gateway: GatewayContext): Promise<void> {
  await stop(accessRefusal(rules(asked, gateway)), asked, gateway);
}

/** Reads go on, and what stops changes. */
function isSafeUnderOldPolicy({ command, isStop = false }: AskedFor): boolean {
  if (isStop) return true;
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

type Rules = Pick<GatewayContext, "policy" | "ourTeamId" | "nameOf">;

/** The refusal without a record of it. */
export function refusalOf(asked: AskedFor, gateway: Rules): PolicyRefusal | undefined {
  return decide(rules(asked, gateway)).refused;
}

export function rules(asked: AskedFor, { policy, ourTeamId, nameOf }: Rules): Asked {
  return { ...asked, policy, ourTeamId, nameOf };
}

async function stop(
  refused: PolicyRefusal | undefined,
  asked: AskedFor,
  gateway: Pick<GatewayContext, "store">,
): Promise<void> {
  if (refused)
    await refuse(asked, { ...refused, rule: `${asked.notedAs ?? ""}${refused.rule}` }, gateway);
}

/** Records in the audit trail that a rule refused it. Throws Refused. */
export async function refuse(
  asked: Pick<AskedFor, "command" | "person" | "targets">,
  { rule, text, hint }: { rule: string; text: string; hint?: string | undefined },
  gateway: Pick<GatewayContext, "store">,
): Promise<never> {
  await noteRefusal(asked, rule, gateway);
  throw new Refused(text, hint);
}

/** Whether this person may see names of VMs and projects in pickers and on the Home tab. */
export function maySeeNames(
  person: Person,
  gateway: Pick<GatewayContext, "policy" | "ourTeamId">,
): boolean {
  return placesSeen(gateway.policy, person, gateway.ourTeamId).length > 0;
}

export async function noteRefusal(
  asked: Pick<AskedFor, "command" | "person" | "targets">,
  rule: string,
  gateway: Pick<GatewayContext, "store">,
): Promise<void> {
  await gateway.store.note({
    what: "refusal",
    who: asked.person.id,
    team: asked.person.teamId,
    command: asked.command.name,
    targets: asked.targets.map(({ id }) => id),
    rule,
  });
}
