import { UserError } from "../../errors.ts";
import { buttons, context, message, type Message, news, section } from "../../messages/message.ts";
import { md, mention, name } from "../../messages/text.ts";
import { lists } from "../../policy/access.ts";
import { ownerOf } from "../../policy/judged.ts";
import type { DialogFacts } from "../../registry/define.ts";
import type { Input } from "../../registry/invocation.ts";
import { deedOf } from "../../requests/render/asking.ts";
import type { Submission } from "../../requests/submit/submit.ts";
import { say } from "../error-reply.ts";
import type { Press } from "../receive/interaction.ts";
import { refuseUnderOldPolicy } from "./authorize.ts";
import { type Act, type GatewayContext, personOf } from "./gateway-context.ts";
import { labelsOf } from "./submit.ts";

/** Once its request is stored: a review that someone else must sign, and a notice in the audit channel. */
export async function openReview(
  id: string,
  { command, input, target, person, reason = "" }: Submission,
  facts: DialogFacts,
  gateway: GatewayContext,
): Promise<void> {
  const review = {
    request: id,
    command: command.name,
    target: target.name,
    by: person.id,
    reason,
    at: gateway.now(),
  };
  await gateway.store.openReview(review);
  const deed = deedOf({ input, target, ...labelsOf(facts) }, command);
  await gateway.tell("audit", `break-glass-${id}`, reviewNotice(review, deed, person.name));
}

type Review = { request: string; command: string; target: string; reason: string };

/** What came of it follows when it has ended: `recordResults`. */
export function reviewNotice(review: Review, deed: string, who: string): Message {
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

export async function signReview(act: Act<Press>, value: Input): Promise<void> {
  const { reply, gateway } = act;
  const person = await personOf(act, { fresh: true });
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
