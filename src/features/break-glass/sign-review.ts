import type { ModalView } from "@slack/types";
import { UserError } from "../../errors.ts";
import type { Message } from "../../messages/blocks.ts";
import { card } from "../../messages/card.ts";
import { md, mention, name, plain, dayAndTime, withFullStop } from "../../messages/markdown.ts";
import { paragraph } from "../../messages/parts.ts";
import { modal } from "../../messages/views.ts";
import { isSamePerson } from "../../core/permit/approval-rule.ts";
import { isListed } from "../../core/permit/permit.ts";
import { ownerOf } from "../../core/permit/refusal.ts";
import type { Input } from "../../registry/invocation.ts";
import { keepSignature } from "../../core/request/journal.ts";
import { refuseUnderOldPolicy } from "../../talk/authorize.ts";
import { checkedInput } from "../../talk/form-view.ts";
import { type Act, type BeforeAck, personOf } from "../../talk/gateway-context.ts";
import { textAt } from "../../slack/json.ts";
import type { Press, ViewSubmission } from "../../slack/receive/interaction.ts";
import { parseJson } from "../../text/parse-json.ts";
import { type Review, type Reviews, asksForReview, signReviewButton } from "./reviews.ts";

export const reviewCallback = "review";

type Signing = Press | ViewSubmission;

/** The open review that this person may sign. Throws UserError. */
async function reviewOf(id: string, act: BeforeAck<Signing>, reviews: Reviews) {
  const { gateway } = act;
  const person = await personOf(act, { fresh: true });
  const review = (await reviews.unsigned()).find(({ request }) => request === id);
  const request = review && (await gateway.store.get(review.request));
  // Of a request that is no longer kept nobody knows who may see it: only who sees everything
  const isSeen = request !== undefined || (await gateway.sees([]));
  if (!review || !isSeen) throw alreadySigned();
  refuseUnderOldPolicy(gateway);
  const over = request ? [ownerOf(request.record.target)] : [];
  const isIn = (list: "administer" | "approve") => isListed(person, list, gateway, over);
  if (!isIn("administer") && !isIn("approve"))
    throw new UserError("Only an administrator or an approver can sign a review.");
  const { requester } = request?.record ?? { requester: { id: review.by, teamId: person.teamId } };
  if (isSamePerson(person, await gateway.person(requester.id, requester.teamId))) {
    const who = requester.id === person.id ? "You" : "An account with your e-mail address";
    throw new UserError(`${who} used break-glass; someone else must sign.`);
  }
  return { review, person };
}

/** Asks what was checked, before someone signs. */
export async function reviewModal(
  act: Act<Press>,
  value: Input,
  reviews: Reviews,
): Promise<ModalView> {
  const { review } = await reviewOf(textAt(value, "request"), act, reviews);
  const { request, command, target, by: requester, reason } = review;
  const summary = withFullStop(
    md`${mention(requester)} ran ${command} of ${name(target)} (${name(request)}) without approval: “${reason}”`,
  );
  const asked = checkedInput();
  const form = { callback: reviewCallback, metadata: { request }, submit: "Sign" };
  return modal("Sign review", [paragraph(summary), asked], form);
}

/** Throws UserError. */
export async function signReview(
  act: BeforeAck<ViewSubmission>,
  reviews: Reviews,
): Promise<undefined> {
  const { interaction, gateway } = act;
  const id = textAt(parseJson(interaction.privateMetadata), "request");
  const { review, person } = await reviewOf(id, act, reviews);
  const why = plain(interaction.values["reason"] ?? "", 500).trim();
  if (why.length < 3) throw new UserError("Enter what you checked.");
  const { request } = review;
  const { id: who, teamId: team } = person;
  await gateway.store.note({ what: "review-signed", who, team, request, why });
  const own = { byId: person.id, by: person.name, at: await gateway.store.now(), why };
  const signature = await keepSignature(request, own, gateway.store);
  // The process that kept the first signature may have died before it told of it. So whoever signs
  // next tells it, and closes the review last.
  const signed = reviewSigned({ ...review, checked: signature.why }, signature.by);
  await gateway.announceIn("audit", `review-signed-${request}`, signed);
  const signedAt = dayAndTime(signature.at);
  const words = md`✅ Signed by ${signature.by}: “${signature.why}” · ${signedAt}`;
  await gateway.answerNotices(signReviewButton(request), words, asksForReview);
  await reviews.close(request);
  if (signature.byId !== person.id) throw alreadySigned();
}

const alreadySigned = () => new UserError("This review is already signed.");

export function reviewSigned(
  {
    request,
    command,
    target,
    by: requester,
    checked,
  }: Pick<Review, "request" | "command" | "target" | "by"> & { checked: string },
  who: string,
): Message {
  return card({
    sign: "✅",
    title: md`${who} signed the review of ${mention(requester)}'s break-glass, ${command} of ${target}: “${checked}”`,
    push: md`${who} signed the review of a break-glass: ${command} of ${target}`,
    meta: [name(request)],
  });
}
