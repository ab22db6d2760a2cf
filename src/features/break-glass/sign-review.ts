import type { ModalView } from "@slack/types";
import { UserError } from "../../errors.ts";
import {
  type Message,
  context,
  md,
  mention,
  message,
  name,
  news,
  plain,
  section,
  utc,
  when,
} from "../../messages/message.ts";
import { isListed } from "../../core/permit/permit.ts";
import { ownerOf } from "../../core/permit/refusal.ts";
import type { Input } from "../../registry/invocation.ts";
import { keepSignature } from "../../core/request/journal.ts";
import { refuseUnderOldPolicy } from "../../talk/authorize.ts";
import { modal, reasonInput } from "../../talk/form-view.ts";
import { type Act, type BeforeAck, personOf } from "../../talk/gateway-context.ts";
import { textAt } from "../../slack/json.ts";
import type { Press, ViewSubmission } from "../../slack/receive/interaction.ts";
import { parseJson } from "../../text/parse-json.ts";
import { noticeOf } from "./tell-audit.ts";
import { signReviewButton, asksForReview } from "../../core/cards/review-button.ts";

export const reviewCallback = "review";

/** Finds the open review if this person may sign it. Throws UserError. */
async function reviewOf(id: string, act: BeforeAck<Press | ViewSubmission>) {
  const { gateway } = act;
  const person = await personOf(act, { fresh: true });
  const review = (await gateway.store.openReviews()).find(({ request }) => request === id);
  if (!review) throw new UserError("This review is already signed.");
  refuseUnderOldPolicy(gateway);
  const request = await gateway.store.get(review.request);
  const over = request ? [ownerOf(request.record.target)] : [];
  const isIn = (list: "administer" | "approve") => isListed(person, list, gateway, over);
  if (!isIn("administer") && !isIn("approve"))
    throw new UserError("Only an administrator or an approver can sign a review.");
  if (review.by === person.id) throw new UserError("You used break-glass; someone else must sign.");
  return { review, person };
}

/** Builds the form that asks what was checked. */
export async function reviewModal(act: Act<Press>, value: Input): Promise<ModalView> {
  const { review } = await reviewOf(textAt(value, "request"), act);
  const { request, command, target, by, reason } = review;
  const what = md`${mention(by)} ran ${command} of ${name(target)} (${name(request)}) without approval: “${reason}”.`;
  const asked = reasonInput("What did you check? Recorded in the audit trail, with your name.");
  const form = { callback: reviewCallback, metadata: { request }, submit: "Sign" };
  return modal("Sign review", [section(what), asked], form);
}

/**
 * Signs a review, records that, and shows the signature on every message that asked for it. Throws
 * UserError.
 */
export async function signReview(act: BeforeAck<ViewSubmission>): Promise<undefined> {
  const { interaction, gateway } = act;
  const id = textAt(parseJson(interaction.privateMetadata), "request");
  const { review, person } = await reviewOf(id, act);
  const why = plain(interaction.values["reason"] ?? "", 500).trim();
  if (why.length < 3) throw new UserError("Enter what you checked.");
  const { request } = review;
  const { id: who, teamId: team } = person;
  await gateway.store.note({ what: "review-signed", who, team, request, why });
  const signature = { by: person.name, at: await gateway.store.now(), why };
  await keepSignature(request, signature, gateway.store);
  if (!(await gateway.store.closeReview(request)))
    throw new UserError("This review is already signed.");
  const signed = reviewSigned({ ...review, checked: why }, person.name);
  await gateway.tell("audit", `review-signed-${request}`, signed);
  const askedIn = [noticeOf(request), ...(await gateway.store.reviewAskedSince(review.at))];
  const signedAt = when(signature.at, "{date_short_pretty} {time}", utc(signature.at));
  const words = md`✅ Signed by ${person.name}: “${why}” · ${signedAt}`;
  await gateway.answerNotices(askedIn, signReviewButton(request), words, asksForReview);
}

export function reviewSigned(
  {
    request,
    command,
    target,
    by,
    checked,
  }: { request: string; command: string; target: string; by: string; checked: string },
  who: string,
): Message {
  const short = news(md`${who} signed the review of a break-glass: ${command} of ${target}`);
  const text = md`✅ ${who} signed the review of ${mention(by)}'s break-glass, ${command} of ${target}: “${checked}”`;
  return message(short, section(text), context(name(request)));
}
