import { UserError } from "../../errors.ts";
import type { Markdown } from "../../messages/message.ts";
import { placesSeen } from "../../policy/access.ts";
import { decide } from "../../policy/approval-rule.ts";
import { type Asked, accessRefusal } from "../../policy/refusal.ts";
import type { Person } from "../../registry/invocation.ts";
import { frozenWords } from "../../requests/render/asking.ts";
import { namesWithin } from "../../requests/submit/resolve-targets.ts";
import type { GatewayContext } from "./gateway-context.ts";

/** `vmNames` are those known now, unless others are meant. */
export interface AskedFor extends Omit<Asked, keyof Rules> {
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
  const { refused } = decide({ ...rules(asked, gateway), vmNames });
  if (refused) await refuse(asked, refused, gateway);
}

/** Rights over the targets alone: what `protect` says doesn't matter to what ends something. */
export async function authorizeRights(asked: AskedFor, gateway: GatewayContext): Promise<void> {
  const refused = accessRefusal(rules(asked, gateway));
  if (refused) await refuse(asked, refused, gateway);
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

export function rules(asked: AskedFor, { policy, ourTeamId, nameOf }: Rules): Asked {
  return { ...asked, policy, ourTeamId, nameOf };
}

type Noted = Pick<AskedFor, "command" | "person" | "targets" | "notedAs">;

/** Records in the audit trail that a rule refused it. Throws Refused. */
export async function refuse(
  asked: Noted,
  { rule, text, hint }: { rule: string; text: string; hint?: string | undefined },
  gateway: Pick<GatewayContext, "store">,
): Promise<never> {
  await noteRefusal(asked, rule, gateway);
  throw new Refused(text, hint);
}

/** Whether this person may see names of VMs and projects in pickers and on the Home tab. */
export function maySeeNames(person: Person, { policy, ourTeamId }: GatewayContext): boolean {
  return placesSeen(policy, person, ourTeamId).length > 0;
}

export async function noteRefusal(
  { command, person, targets, notedAs = "" }: Noted,
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
