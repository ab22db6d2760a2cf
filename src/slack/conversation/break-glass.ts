import { redisTrouble } from "../../redis/trouble.ts";
import { UserError } from "../../errors.ts";
import { buttons, context, message, section } from "../../messages/message.ts";
import { md, mention, name } from "../../messages/text.ts";
import { lists } from "../../policy/access.ts";
import { type ChangeInvocation, targetWords, withTarget } from "../../registry/invocation.ts";
import { submit } from "../../requests/submit/submit.ts";
import { errorReply, say } from "../error-reply.ts";
import type { Interaction, Reply } from "../receive/interaction.ts";
import { authorize, authorizeTargets } from "./authorize.ts";
import type { GatewayContext } from "./gateway-context.ts";
import { PickOne, resolveOne, targetOfVm, withSnapshotId } from "../../requests/submit/resolve.ts";
import { gatherFacts, placeOf, alreadyRequested, takeTurn } from "./submit-change.ts";

/**
 * Break-glass: runs without approval, for those whom policy lists, with a notice and a review that another administrator
 * must sign. Protection and the freeze still apply.
 */
export async function runInEmergency(
  invocation: ChangeInvocation,
  reason: string,
  interaction: Interaction,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const { command, input } = invocation;
  try {
    if (interaction.kind !== "command") {
      throw new UserError(
        "--break-glass works only in a slash command: a message doesn't prove who wrote it.",
      );
    }
    const { userId, teamId, channelId } = interaction;
    const person = await gateway.person(userId, teamId, { fresh: true });
    const emergency = { breakGlass: true, notedAs: "break-glass: " };
    const asked = { command, input, person, channelId, ...emergency };
    await authorize({ ...asked, targets: [] }, gateway);
    const target = await resolveOne(invocation, gateway);
    if (targetWords(invocation).length > 1)
      throw new UserError("--break-glass takes exactly one target.");
    await authorizeTargets({ ...asked, targets: [target] }, gateway);
    await takeTurn(
      { command, person, target, interactionId: interaction.id, breakGlass: true },
      gateway,
    );
    const { vms } = await gatherFacts(command, target, input, gateway);
    const submitted = await submit(
      {
        command,
        input: withTarget(command, await withSnapshotId(command, input, target, gateway), target),
        target,
        person,
        ...placeOf(interaction, gateway),
        via: "command",
        reason,
        interactionId: interaction.id,
        breakGlass: true,
        ...(vms.length > 0 ? { children: vms.map((vm) => targetOfVm(vm, target.name)) } : {}),
      },
      { ...gateway, staleAfterMs: gateway.policy.timing.staleAfterMs },
    );
    const review = {
      request: submitted.id,
      command: command.name,
      target: target.name,
      by: person.id,
      reason,
      at: gateway.now(),
    };
    await gateway.store.openReview(review);
    await gateway.tell("audit", `break-glass-${submitted.id}`, reviewNotice(review, person.name));
    if (!submitted.isNew) await reply.privately(await alreadyRequested(submitted.id, gateway));
  } catch (error) {
    if (error instanceof PickOne) {
      return reply.privately(
        say(md`${error.message} --break-glass needs an exact target: use the ID or project/name.`),
      );
    }
    if (redisTrouble(error) !== undefined) throw error;
    await reply.privately(errorReply(error, gateway.log));
  }
}

type Review = { request: string; command: string; target: string; reason: string };

function reviewNotice(review: Review, who: string) {
  const value = JSON.stringify({ request: review.request });
  const text = md`🚨 *Break-glass:* ${who} ran ${name(review.command)} on ${name(review.target)} without waiting for approval: “${review.reason}”.`;
  return message(
    `Break-glass: ${who} ran ${review.command} on ${review.target}`,
    section(text),
    context(
      md`${name(review.request)} · another administrator must sign the review; every digest repeats it until then.`,
    ),
    buttons([{ label: "Sign review", action: "review:sign", value }]),
  );
}

export async function signReview(
  interaction: Interaction,
  value: Record<string, unknown>,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const person = await gateway.person(interaction.userId, interaction.teamId, { fresh: true });
  const review = await gateway.store.review(String(value["request"]));
  if (!review) throw new UserError("This review is already signed.");
  if (!lists(gateway.policy, person, gateway.ourTeamId).includes("administer")) {
    throw new UserError("Only an administrator can sign a review.");
  }
  if (review.by === person.id) throw new UserError("You used break-glass; someone else must sign.");
  await gateway.store.note({
    what: "review-signed",
    who: person.id,
    team: person.teamId,
    request: review.request,
  });
  if (!(await gateway.store.closeReview(review.request)))
    throw new UserError("This review is already signed.");
  const done = say(
    md`Review of ${name(review.request)} signed by ${person.name}. ${mention(review.by)}`,
  );
  await gateway.tell("audit", `review-signed-${review.request}`, done);
  await reply.privately(say(md`Signed and recorded in the audit trail.`));
}
