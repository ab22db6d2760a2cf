import { redisTrouble } from "../../redis/trouble.ts";
import { UserError } from "../../errors.ts";
import { buttons, context, message, type Message, news, section } from "../../messages/message.ts";
import { md, mention, name } from "../../messages/text.ts";
import { lists } from "../../policy/access.ts";
import { ownerOf } from "../../policy/judged.ts";
import { type ChangeInvocation, targetWords } from "../../registry/invocation.ts";
import { deedOf } from "../../requests/render/asking.ts";
import { submit } from "../../requests/submit/submit.ts";
import { errorReply, say } from "../error-reply.ts";
import type { Interaction, Reply, Submission } from "../receive/interaction.ts";
import { authorize, authorizeTargets, refuseUnderOldPolicy } from "./authorize.ts";
import { emergency, openDialog, readDialog, reasonIn } from "./dialog.ts";
import type { GatewayContext } from "./gateway-context.ts";
import { PickOne, resolveOne, withSnapshotId } from "../../requests/submit/resolve.ts";
import { alreadyRequested, childrenOf, gatherFacts, labelsOf, takeTurn } from "./submit-change.ts";

/**
 * Break-glass: runs without approval, for those whom policy lists, once its form is confirmed, with a notice and a review that
 * someone else must sign. Protection and the freeze still apply.
 */
export async function offerEmergency(
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
    const asked = { command, input, person, channelId, ...emergency };
    await authorize({ ...asked, targets: [] }, gateway);
    const target = await resolveOne(invocation, gateway);
    if (targetWords(invocation).length > 1)
      throw new UserError("--break-glass takes exactly one target.");
    await authorizeTargets({ ...asked, targets: [target] }, gateway);
    const exact = await withSnapshotId(command, input, target, gateway);
    const form = { breakGlass: reason };
    if (!(await openDialog(command, target, exact, interaction, reply, gateway, form)))
      throw new UserError("Its form took too long to open. Nothing was done.", "Type it again.");
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

/** Its submitted form: runs at once. Everything is decided again. */
export async function runInEmergency(
  interaction: Submission,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const { command, target, input, meta } = await readDialog(interaction, gateway);
  const { userId, teamId } = interaction;
  const person = await gateway.person(userId, teamId, { fresh: true });
  const { channelId, threadTs, sealedResponseUrl } = meta;
  const asked = { command, input, person, channelId, targets: [target], ...emergency };
  await authorize(asked, gateway);
  await takeTurn(
    { command, person, target, interactionId: interaction.id, breakGlass: true },
    gateway,
  );
  const facts = await gatherFacts(command, target, input, gateway);
  const reason = reasonIn(interaction);
  const submitted = await submit(
    {
      command,
      input,
      target,
      person,
      channelId: channelId || person.id,
      ...(threadTs ? { threadTs } : {}),
      ...(sealedResponseUrl ? { sealedResponseUrl } : {}),
      via: "modal",
      reason,
      interactionId: interaction.id,
      breakGlass: true,
      ...labelsOf(facts),
      ...childrenOf({ command, target }, facts),
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
  const deed = deedOf({ input, target, ...labelsOf(facts) }, command);
  const notice = reviewNotice(review, deed, person.name);
  await gateway.tell("audit", `break-glass-${submitted.id}`, notice);
  if (!submitted.isNew) await reply.privately(await alreadyRequested(submitted.id, gateway));
}

type Review = { request: string; command: string; target: string; reason: string };

/** What came of it follows when it has ended: `recordResults`. */
export function reviewNotice(review: Review, deed: string, who: string) {
  const value = JSON.stringify({ request: review.request });
  const text = md`🚨 *Break-glass:* ${who} started this without approval: *${deed}*, “${review.reason}”. How it ends is told here.`;
  return message(
    news(md`Break-glass by ${who}, without approval: ${deed}: “${review.reason}”`),
    section(text),
    context(
      md`${name(review.request)} · another administrator or approver must sign the review; every digest repeats it until then.`,
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
  refuseUnderOldPolicy(gateway);
  const request = await gateway.store.get(review.request);
  const over = request ? [ownerOf(request.record.target)] : [];
  const isIn = lists(gateway.policy, person, gateway.ourTeamId, over);
  if (!isIn.includes("administer") && !isIn.includes("approve"))
    throw new UserError("Only an administrator or an approver can sign a review.");
  if (review.by === person.id) throw new UserError("You used break-glass; someone else must sign.");
  await gateway.store.note({
    what: "review-signed",
    who: person.id,
    team: person.teamId,
    request: review.request,
  });
  if (!(await gateway.store.closeReview(review.request)))
    throw new UserError("This review is already signed.");
  await gateway.tell("audit", `review-signed-${review.request}`, reviewSigned(review, person.name));
  await reply.privately(say(md`Signed and recorded in the audit trail.`));
}

export function reviewSigned(review: Review & { by: string }, who: string): Message {
  const text = md`${who} signed the review of ${mention(review.by)}'s break-glass: ${review.command} of ${review.target}.`;
  return message(
    news(md`${who} signed the review of a break-glass: ${review.command} of ${review.target}`),
    section(text),
    context(name(review.request)),
  );
}
