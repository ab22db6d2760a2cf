import { permitAsRequest, type Asking } from "../core/permit/permit.ts";
import { type Invocation, withTarget } from "../registry/invocation.ts";
import { resolveOne } from "../core/submit/resolve-targets.ts";
import { originOf } from "./act-origin.ts";
import { answerOf } from "./answer.ts";
import { authorizeTargets } from "./authorize.ts";
import type { Act } from "./gateway-context.ts";
import { placeOf, submitChange } from "./submit-change.ts";

/**
 * Turns a read command that can be a request (`asRequest`) into one, if policy wants approvals for
 * it. Once approved, its card has the button that runs it, for the requester. Returns false when no
 * approval is needed, for every other command, and for a mention, whose button asks again. Throws
 * if this person may not run it on this target.
 */
export async function requestApprovalOfRead(
  { command, input, args }: Invocation,
  asking: Asking,
  act: Act,
): Promise<boolean> {
  if (command.kind !== "read" || !command.asRequest || args === undefined) return false;
  const { interaction, gateway } = act;
  const { asRequest } = command;
  const target = await resolveOne(asking, { command: asRequest, input }, gateway);
  const about = { targets: [target], input: withTarget(asRequest, input, target) };
  const permit = permitAsRequest(await authorizeTargets(asking, about, gateway));
  if (interaction.kind === "mention" || !permit || permit.approvals.required === 0) return false;
  // Run the command once and drop the answer: what the command itself refuses shouldn't wait for
  // approvals.
  await answerOf({ command, args }, asking, act);
  await submitChange(permit, { ...placeOf(interaction), origin: originOf(act) }, act);
  return true;
}
