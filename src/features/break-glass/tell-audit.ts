import {
  type Message,
  buttons,
  context,
  md,
  message,
  name,
  news,
  section,
  when,
  withFullStop,
} from "../../messages/message.ts";
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
  const short = news(md`Break-glass by ${who}, without approval: ${deed}: “${reason}”`);
  const started = md`🚨 *Break-glass:* ${who} started this without approval: *${deed}*, “${reason}”`;
  const text = md`${withFullStop(started)} The result will be posted here.`;
  const next = md`${name(id)} · ${asksForReview}`;
  return message(short, section(text), context(next), buttons([signReviewButton(id, deed)]));
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
  const end = md`Break-glass by ${record.requester.name}: ${headline(request, command)}`;
  const told = message(
    news(end),
    section(md`${symbolOf(request, command)} ${end}`),
    context(md`Ended at ${when(changedAt)} · ${name(record.id)}`),
  );
  const so = state === "not-applied" ? "-not-applied" : "";
  await tellAudit(`break-glass-end-${record.id}${so}`, told);
}
