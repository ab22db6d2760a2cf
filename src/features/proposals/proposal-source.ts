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
import {
  type Proposals,
  type StoredProposal,
  hasExpired,
  parseProposal,
  requestOf,
} from "./proposals.ts";
import { renderProposal, renderReminder, renderResultForAsker } from "./render-proposal.ts";
import type { AfterNote } from "../../attestation/render-attestation.ts";
import type { Owed, Relocation } from "../../core/deliver/post-once.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";

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
  /** What the card of an ended request says about attesting its VM again. */
  attestationNote(request: StoredRequest, command: ChangeCommand): Promise<AfterNote | undefined>;
  log: Log;
  config: {
    readonly policy: Pick<
      Policy,
      "alerts" | "audit" | "channels" | "confirm" | "services" | "teams"
    >;
  };
}): Source {
  const { proposals, store, web } = options;
  const { outbox } = proposals;

  async function prepareProposal(id: string, fields: Fields): Promise<Owes | undefined> {
    const proposal = parseProposal(id, fields);
    const command = options.commands.find(({ name }) => name === proposal?.record.command);
    if (!proposal || !command) return undefined;
    const { record, state, delivered, revision, createdAt, takenAt } = proposal;
    const now = await proposals.now();
    const request = await requestOf(proposal, store);
    if (proposal.request === undefined && request) {
      const isShown = request.delivered.card !== undefined || now > takenAt + linkWithinMs;
      if (!isShown) return { createdAt, revision, messages: [], waitMs: soonMs };
      if (await proposals.settle(proposal, request.record.id))
        return prepareProposal(id, await outbox.get(id));
    }
    const isOver = !request && state !== "expired" && hasExpired(proposal, now);
    if (isOver && (await proposals.expire(proposal)))
      return prepareProposal(id, await outbox.get(id));
    const isOpen = state === "open" || (state === "running" && !request);
    const frozen = isOpen ? await store.freezeState() : undefined;
    const { card: standsAt, formerCard, shown: before, marks } = delivered;
    const shows = {
      field: "shown",
      before,
      now: isOpen ? `open ${frozen?.at ?? ""}` : `${state}${request?.final ? " ended" : ""}`,
      standsAt,
      isLast: true,
      asks: /^(open|editing)/.test(before) && formerCard === undefined,
    };
    const untilEndMs = Math.max(soonMs, record.expiresAt - now);
    const { policy } = options.config;
    const { channels } = policy;
    // A proposal in a person's name goes only to that person's direct messages.
    const instead = "person" in record.by ? { teams: {} } : policy;
    const isRunAt = (channel: string) =>
      isRunIn({ policy: { channels }, command, channelId: channel });
    const channelId =
      standsAt?.channelId ?? openPlace(record.channelId, instead, proposal.closed, now, isRunAt);
    if (channelId === undefined)
      return { createdAt, revision, messages: [], waitMs: Math.min(untilEndMs, tryAgainMs) };
    const place = { channelId };
    const onClosed = async (error: string): Promise<Relocation> => {
      options.log.warn("proposal.channel-closed", { proposal: id, channel: channelId, error });
      await proposals.close(id, channelId);
      return "moved";
    };
    const noteNow = async () =>
      request?.final ? options.attestationNote(request, command) : undefined;
    const render = async () => {
      const link = await linkTo(request?.delivered.card, { web });
      return renderProposal(proposal, command, {
        policy: options.config.policy,
        frozen,
        runIn: isRunAt(channelId) ? undefined : channels,
        request,
        link,
        note: await noteNow(),
      });
    };
    const card: Owed = {
      key: "card",
      mark: marks["card"],
      place,
      render,
      shows,
      onClosed,
      urgency: "decision",
    };
    const remindAt = createdAt + (record.expiresAt - createdAt) / 2;
    const remindsIn = state === "open" && "asker" in record.by ? remindAt - now : 0;
    const messages = [
      card,
      ...(remindsIn < 0 ? reminderOf(proposal, command) : []),
      ...resultForAsker(proposal, command, { request, noteNow }),
    ];
    const takenMs = now < takenAt + linkWithinMs ? soonMs : lookEveryMs;
    const openMs = remindsIn > 0 ? Math.min(remindsIn + 1, untilEndMs) : untilEndMs;
    const waitMs = state === "open" ? openMs : isOpen ? takenMs : 0;
    return { createdAt, revision, messages, waitMs };
  }

  function reminderOf(proposal: StoredProposal, command: ChangeCommand): Owed[] {
    const { card, marks } = proposal.delivered;
    if (!card) return [];
    return [
      {
        key: "half-way",
        mark: marks["half-way"],
        place: { channelId: card.channelId, threadTs: card.ts },
        render: () => renderReminder(proposal, command),
        urgency: "decision",
      },
    ];
  }

  /**
   * What the person who asked is told once, when it has ended: in the thread of the card, if that is
   * where they asked; otherwise in their direct messages, since they may not read that channel.
   */
  function resultForAsker(
    proposal: StoredProposal,
    command: ChangeCommand,
    current: {
      request: StoredRequest | undefined;
      noteNow(): Promise<AfterNote | undefined>;
    },
  ): Owed[] {
    const { record, state, delivered } = proposal;
    const { request } = current;
    if (!("asker" in record.by)) return [];
    const { card } = delivered;
    const isBelowCard = card !== undefined && card.channelId === record.by.askedIn;
    const renderWith = (note?: AfterNote) =>
      renderResultForAsker(proposal, command, { request, note, isBelowCard });
    const result = renderWith();
    if (!result) return [];
    // A request that was made after all is told although its end as expired was told before.
    const key = request === undefined && state === "expired" ? "expired" : "result";
    const below = card && isBelowCard && { channelId: card.channelId, threadTs: card.ts };
    return [
      {
        key,
        mark: delivered.marks[key],
        place: below || { channelId: record.by.asker.id },
        render: async () => renderWith(await current.noteNow()) ?? result,
        urgency: "result",
      },
    ];
  }

  return { outbox, owedSince: "createdAt", prepareMessages: prepareProposal };
}
