import { type Message } from "../../messages/blocks.ts";
import { card } from "../../messages/card.ts";
import { md, name, when, withFullStop } from "../../messages/markdown.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import { isReviewed } from "../../core/request/record.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { deedOf } from "../../core/cards/asking.ts";
import { headline, symbolOf } from "../../core/cards/render-result.ts";
import { type Reviews, asksForReview, signReviewButton } from "./reviews.ts";

type TellAudit = (id: string, message: Message) => Promise<void>;

/** A review that someone else must sign, and a notice in the audit channel. Idempotent. */
export async function openReview(
  { record }: StoredRequest,
  command: ChangeCommand,
  { reviews, tellAudit }: { reviews: Pick<Reviews, "open">; tellAudit: TellAudit },
): Promise<void> {
  const { id, target, requester, reason = "", createdAt } = record;
  const what = { request: id, command: command.name, target: target.name, reason };
  const isOpen = await reviews.open({ ...what, by: requester.id, at: createdAt });
  if (isOpen)
    await tellAudit(
      `break-glass-${id}`,
      reviewNotice(what, deedOf(record, command), requester.name),
    );
}

/** Renders the notice of the start. The result follows when the request has ended (`tellEnd`). */
export function reviewNotice(
  { request: id, reason }: { request: string; reason: string },
  deed: string,
  who: string,
): Message {
  const started = md`*Break-glass:* ${who} started this without approval: *${deed}*, “${reason}”`;
  return card({
    sign: "🚨",
    title: md`${withFullStop(started)} The result will be posted here.`,
    push: md`Break-glass by ${who}, without approval: ${deed}: “${reason}”`,
    meta: [md`${name(id)} · ${asksForReview}`],
    ways: [signReviewButton(id, deed)],
  });
}

/**
 * Tells the audit channel the result: the notice at the start only told that the change began. A
 * change that was told as not applied and takes effect late is told once more.
 */
export async function tellEnd(
  request: StoredRequest,
  command: ChangeCommand,
  tellAudit: TellAudit,
): Promise<void> {
  const { record, state, changedAt } = request;
  if (!isReviewed(record)) return;
  const told = card({
    sign: symbolOf(request, command),
    title: md`Break-glass by ${record.requester.name}: ${headline(request, command)}`,
    meta: [md`Ended at ${when(changedAt)} · ${name(record.id)}`],
  });
  const so = state === "not-applied" ? "-not-applied" : "";
  await tellAudit(`break-glass-end-${record.id}${so}`, told);
}
