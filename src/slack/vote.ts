import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../errors.ts";
import { md } from "../messages/text.ts";
import { voteProblemText } from "../approvals/votes.ts";
import { voteRefusal, voteRefusalText } from "../policy/vote.ts";
import type { ChangeCommand } from "../registry/define.ts";
import type { Person } from "../registry/person.ts";
import type { StoredRequest } from "../requests/record.ts";
import { say } from "./apology.ts";
import type { Ask } from "./ask.ts";
import type { AskedFor } from "./refuse.ts";
import type { Reply } from "./reply.ts";
import type { Talk } from "./talk.ts";

/**
 * A pressed *Approve* or *Deny*. The button names a request and what the voter saw of its digest; who the voter is and
 * whether their word counts is looked up now, and the rest is decided in one script.
 */
export async function vote(
  ask: Extract<Ask, { kind: "button" }>,
  value: Record<string, unknown>,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  const request = await requestWithCard(String(value["request"]), talk);
  const forged = new UserError(
    "This button doesn't belong to a request that can be voted on. Nothing was counted.",
  );
  if (!request?.record.approval) return refuse("unknown-request", forged, undefined);
  const { card } = request.delivered;
  // A button copied into another message or channel is not the card that was shown with the facts
  const isItsCard =
    ask.viewId !== undefined || (card?.channelId === ask.channelId && card.ts === ask.messageTs);
  if (!isItsCard) return refuse("another-message", forged, request);
  const voter = await talk.person(ask.userId, ask.teamId, { fresh: true });
  const { policy, ourTeamId } = talk;
  const no = voteRefusal({ policy, voter, ourTeamId, requesterId: request.record.requester.id });
  if (no) return refuse(no, new UserError(voteRefusalText(no)), request);
  const choice = ask.action === "vote:deny" ? "deny" : "approve";
  const outcome = await talk.store.vote(
    request,
    voter,
    choice,
    typeof value["digest"] === "string" ? value["digest"] : "",
  );
  if (outcome.is === "refused") {
    return refuse(outcome.why, new UserError(voteProblemText(outcome.why)), request);
  }
  if (outcome.is === "authorized") await talk.wake(request.record.id).catch(() => undefined);
  talk.nudge();

  async function refuse(
    why: string,
    error: UserError,
    about: StoredRequest | undefined,
  ): Promise<void> {
    await talk.store.note({
      what: "vote-refused",
      who: ask.userId,
      team: ask.teamId,
      why,
      ...(about ? { request: about.record.id } : {}),
    });
    await reply.privately(say(md`${error.message}`));
  }
}

/** What pressing something on a request asks for, as policy sees it. */
export function askedFor(request: StoredRequest, command: ChangeCommand, person: Person): AskedFor {
  const { target, channelId, children } = request.record;
  return {
    command,
    targets: [target],
    person,
    channelId,
    vmNames: (children ?? []).map(({ name }) => name),
  };
}

const cardWithinMs = 2000;

/** The request, with the place of its card: who presses at once may be faster than the answer to our own post. */
async function requestWithCard(
  id: string,
  talk: Pick<Talk, "store">,
): Promise<StoredRequest | undefined> {
  const until = performance.now() + cardWithinMs;
  for (;;) {
    const request = await talk.store.get(id);
    const isBeingPosted = request?.delivered.said["card"]?.startsWith("posting") === true;
    if (!isBeingPosted || performance.now() > until) return request;
    await sleep(50);
  }
}
