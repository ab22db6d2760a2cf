import type { Policy } from "../../config/policy-file.ts";
import type { Announce } from "../../core/deliver/notices.ts";
import {
  type NameOf,
  channelOfTeam,
  peopleInWords,
  policyPlaceOf,
  rightsOver,
} from "../../core/permit/access.ts";
import { ownerOf } from "../../core/permit/refusal.ts";
import { type Message } from "../../messages/blocks.ts";
import { card } from "../../messages/card.ts";
import { md, name, when, withFullStop } from "../../messages/markdown.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import { isReviewed } from "../../core/request/record.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { describeChange } from "../../core/cards/asking.ts";
import { headline, symbolOf } from "../../core/cards/render-result.ts";
import { type Reviews, asksForReview, signReviewButton } from "./reviews.ts";

type TellAudit = (id: string, message: Message) => Promise<void>;

/**
 * A review that someone else must sign, and a notice in the audit channel and, unless it was asked
 * there, in the channel of the team whose VM it is. It names those who may sign. Idempotent.
 */
export async function openReview(
  { record }: StoredRequest,
  command: ChangeCommand,
  on: {
    reviews: Pick<Reviews, "open">;
    tellAudit: TellAudit;
    announce: Announce;
    namesOf(ids: readonly string[]): Promise<NameOf>;
    config: { readonly policy: Policy };
  },
): Promise<void> {
  const { reviews, tellAudit, announce, namesOf } = on;
  const { policy } = on.config;
  const { id, target, requester, reason = "", createdAt } = record;
  const review = { request: id, command: command.name, target: target.name, reason };
  const isOpen = await reviews.open({ ...review, by: requester.id, at: createdAt });
  if (!isOpen) return;
  const owner = ownerOf(target);
  const signers = rightsOver(policy, owner).flatMap(({ rights }) => rights.approve);
  const others = [...new Set([...signers, ...policy.access.administer])].filter(
    (signer) => signer !== requester.id,
  );
  const who = peopleInWords(others, await namesOf(others));
  const message = reviewNotice(review, describeChange(record, command), requester.name, who);
  await tellAudit(`break-glass-${id}`, message);
  const channelId = channelOfTeam(policy, policyPlaceOf(policy, owner));
  const isTold = channelId === record.channelId || channelId === policy.audit?.channel;
  if (channelId !== undefined && !isTold)
    await announce({ id: `break-glass-team-${id}`, channelId, message });
}

/** Renders the notice of the start. The result follows when the request has ended (`tellEnd`). */
export function reviewNotice(
  { request: id, reason }: { request: string; reason: string },
  deed: string,
  who: string,
  reviewers = "",
): Message {
  const started = md`*Break-glass:* ${who} started this without approval: *${deed}*, “${reason}”`;
  return card({
    sign: "🚨",
    title: md`${withFullStop(started)} The result will be posted here.`,
    push: md`Break-glass by ${who}, without approval: ${deed}: “${reason}”`,
    lines: [reviewers !== "" && md`Reviewers: ${reviewers}.`],
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
  const message = card({
    sign: symbolOf(request, command),
    title: md`Break-glass by ${record.requester.name}: ${headline(request, command)}`,
    meta: [md`Ended at ${when(changedAt)} · ${name(record.id)}`],
  });
  const so = state === "not-applied" ? "-not-applied" : "";
  await tellAudit(`break-glass-end-${record.id}${so}`, message);
}
