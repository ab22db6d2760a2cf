import type { Policy } from "../../config/policy-file.ts";
import type { Log } from "../../log/log.ts";
import { isRunIn } from "../../core/permit/refusal.ts";
import type { Fields } from "../../redis/redis.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import type { Journal } from "../../core/request/journal.ts";
import type { Owes, Source } from "../../core/deliver/deliver.ts";
import { linkTo } from "../../core/deliver/permalink.ts";
import type { Web } from "../../slack/web.ts";
import { openPlace, tryAgainMs } from "../../core/deliver/open-place.ts";
import { type Proposals, hasExpired, parseProposal, requestOf } from "./proposals.ts";
import { renderProposal } from "./render-proposal.ts";

/** How often a proposal is read again that someone is running, in case that process died (ms). */
const lookEveryMs = 5_000;
/** How often it is read while its request, or the message to link to, is on its way (ms). */
const soonMs = 250;
/** How long the card waits for the message of its request to link to (ms). */
const linkWithinMs = 10_000;

/**
 * Source of the cards of proposals. It also ends a proposal: as expired, or with the request that
 * was made of it.
 */
export function proposalSource(options: {
  proposals: Proposals;
  store: Pick<Journal, "get" | "madeBy" | "freezeState">;
  commands: readonly ChangeCommand[];
  web: Web;
  log: Log;
  config: { readonly policy: Pick<Policy, "alerts" | "audit" | "channels" | "confirm" | "teams"> };
}): Source {
  const { proposals, store, web } = options;
  const { outbox } = proposals;

  async function readProposal(id: string, fields: Fields): Promise<Owes | undefined> {
    const proposal = parseProposal(fields);
    const command = options.commands.find(({ name }) => name === proposal?.record.command);
    if (!proposal || !command) return undefined;
    const { record, state, delivered, revision, createdAt, changedAt } = proposal;
    const now = await proposals.now();
    const request = await requestOf(proposal, store);
    if (state === "running" && proposal.request === undefined && request) {
      const isShown = request.delivered.card !== undefined || now > changedAt + linkWithinMs;
      if (!isShown) return { createdAt, revision, messages: [], waitMs: soonMs };
      if (await proposals.settle(proposal, request.record.id))
        return readProposal(id, await outbox.get(id));
    }
    const isOver = !request && state !== "expired" && hasExpired(proposal, now);
    if (isOver && (await proposals.expire(proposal))) return readProposal(id, await outbox.get(id));
    const isOpen = state === "open" || (state === "running" && !request);
    const frozen = isOpen ? await store.freezeState() : undefined;
    const { card: standsAt, formerCard, shown: before, said } = delivered;
    const shows = {
      field: "shown",
      before,
      now: isOpen ? `open ${frozen?.at ?? ""}` : state,
      standsAt,
      isLast: true,
      asks: /^(open|editing)/.test(before) && formerCard === undefined,
    };
    const untilEndMs = Math.max(soonMs, record.expiresAt - now);
    const { policy } = options.config;
    const { channels } = policy;
    // A proposal in a person's name goes only to that person's direct messages.
    const instead = "service" in record.by ? policy : { teams: {} };
    const isRunAt = (one: string) => isRunIn({ policy: { channels }, command, channelId: one });
    const channelId =
      standsAt?.channelId ?? openPlace(record.channelId, instead, proposal.closed, now, isRunAt);
    if (channelId === undefined)
      return { createdAt, revision, messages: [], waitMs: Math.min(untilEndMs, tryAgainMs) };
    const place = { channelId };
    const closed = async (error: string) => {
      options.log.warn("proposal.channel-closed", { proposal: id, channel: channelId, error });
      await proposals.close(id, channelId);
      return 0;
    };
    const render = async () => {
      const link = await linkTo(request?.delivered.card, { web });
      return renderProposal(proposal, command, {
        policy: options.config.policy,
        frozen,
        runIn: isRunAt(channelId) ? undefined : channels,
        request,
        link,
      });
    };
    const messages = [
      {
        key: "card",
        mark: said["card"],
        place,
        render,
        shows,
        closed,
        urgency: "decision" as const,
      },
    ];
    const takenMs = now < changedAt + linkWithinMs ? soonMs : lookEveryMs;
    const waitMs = state === "open" ? untilEndMs : isOpen ? takenMs : 0;
    return { createdAt, revision, messages, waitMs };
  }

  return { outbox, owedSince: "createdAt", readSubject: readProposal };
}
