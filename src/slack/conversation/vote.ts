import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../../errors.ts";
import { md, name, plain } from "../../messages/text.ts";
import { type VoteOutcome, voteProblemTexts } from "../../approvals/votes.ts";
import { meets, needsOf } from "../../policy/vote-needs.ts";
import { voteRefusal, voteRefusalText } from "../../policy/vote.ts";
import type { ChangeCommand } from "../../registry/define.ts";
import type { Person } from "../../registry/invocation.ts";
import { type StoredRequest, stateWords } from "../../requests/journal/record.ts";
import { say } from "../error-reply.ts";
import { deedOf, missingWords } from "../../requests/render/asking.ts";
import { isDirect, type Reply, type Submission, type Press } from "../receive/interaction.ts";
import { type AskedFor, authorize, refuseUnderOldPolicy } from "./authorize.ts";
import { changeNamed, type GatewayContext } from "./gateway-context.ts";
import type { ModalView } from "@slack/types";
import { section } from "../../messages/message.ts";
import { modal, reasonInput, textInput } from "./dialog-view.ts";
import { at, parseJson, textAt } from "../web.ts";

/**
 * A pressed *Approve* or *Deny*. The button names a request and the fingerprint that the voter saw; the voter is looked up
 * now, and one script decides the rest. A no counts at once; its reason is asked for afterwards.
 */
export async function vote(
  interaction: Press,
  value: Record<string, unknown>,
  reply: Reply,
  gateway: GatewayContext,
): Promise<void> {
  const request = await requestWithCard(String(value["request"]), gateway);
  const forged = new UserError(
    "This button doesn't belong to a request that can be voted on. No vote was counted.",
  );
  if (!request?.record.approval) return refuse("unknown-request", forged, undefined);
  const { card } = request.delivered;
  // A button copied into another message isn't the card that shows the facts; Home and what only the voter sees show them too
  const isItsCard =
    interaction.viewId !== undefined ||
    interaction.ephemeral ||
    isDirect(interaction) ||
    (card?.channelId === interaction.channelId && card.ts === interaction.messageTs);
  if (!isItsCard) return refuse("another-message", forged, request);
  if (interaction.action !== "vote:deny") refuseUnderOldPolicy(gateway);
  const voter = await gateway.person(interaction.userId, interaction.teamId, { fresh: true });
  const choice = interaction.action === "vote:deny" ? "deny" : "approve";
  const outcome = await castVote(request, voter, choice, textAt(value, "digest"), gateway);
  if (outcome.is === "refused") return refuse(outcome.why, new UserError(outcome.text), request);
  if (outcome.is === "authorized") await gateway.wake(request.record.id).catch(() => undefined);
  const command = changeNamed(request.record.command, gateway);
  if (outcome.is === "denied" && command) await reply.open(denialModal(request, command));

  async function refuse(
    why: string,
    error: UserError,
    about: StoredRequest | undefined,
  ): Promise<void> {
    await gateway.store.note({
      what: "vote-refused",
      who: interaction.userId,
      team: interaction.teamId,
      why,
      ...(about ? { request: about.record.id } : {}),
    });
    await reply.privately(say(md`${error.message}`));
  }
}

type Cast =
  | Exclude<VoteOutcome, { is: "refused" | "again" }>
  | { is: "refused"; why: string; text: string };

/**
 * Judges a vote beside those that are there, and casts it. When others approved meanwhile it is judged again: of two people
 * for one place only the first counts. Each time one approval more is there, so it ends.
 */
async function castVote(
  first: StoredRequest,
  voter: Person,
  choice: "approve" | "deny",
  seen: string,
  gateway: GatewayContext,
): Promise<Cast> {
  const { policy, ourTeamId } = gateway;
  let request: StoredRequest | undefined = first;
  for (let tries = first.record.approval?.required ?? 0; request && tries >= 0; tries -= 1) {
    const { approval } = request.record;
    if (!approval) break;
    const votes = needsOf(policy, approval);
    const accounts = await accountsOf(request, voter, gateway);
    const isNo = choice === "deny";
    const no = voteRefusal({ votes, voter, ourTeamId, isNo, ...accounts });
    if (no) return { is: "refused", why: no, text: voteRefusalText(no, missingWords(request)) };
    const outcome = await gateway.store.vote(request, voter, choice, seen, meets(votes, voter));
    if (outcome.is === "refused") return { ...outcome, text: voteProblemTexts[outcome.why] };
    if (outcome.is !== "again") return outcome;
    request = await gateway.store.get(request.record.id);
  }
  return { is: "refused", why: "crowd", text: voteProblemTexts.crowd };
}

export const denialCallback = "denial";

function denialModal({ record }: StoredRequest, command: ChangeCommand): ModalView {
  const { requester, id } = record;
  const what = md`Denied: *${deedOf(record, command)}*. Nothing was sent.`;
  const label = `Why? ${requester.name} reads it in the thread.`;
  const reason = textInput("reason", label, { multiline: true, max_length: 500 });
  return modal("Denied", [section(what), { ...reason, optional: true }], {
    callback: denialCallback,
    metadata: { request: id },
    submit: "Give the reason",
    close: "No reason",
  });
}

/** Of whoever denied it, once. */
export async function giveReason(
  interaction: Submission,
  gateway: GatewayContext,
): Promise<{ errors: Record<string, string> } | undefined> {
  const reason = plain(interaction.values["reason"] ?? "", 500);
  if (reason === "") return undefined;
  const id = textAt(parseJson(interaction.privateMetadata), "request");
  const request = await gateway.store.get(id);
  const given = request && (await gateway.store.giveReason(request, interaction.userId, reason));
  if (!given) return field("This has a reason already, or you didn't deny it.");
  return undefined;
}

/** The requester and those who approved so far, with their groups, and their e-mail addresses where the voter's is known. */
async function accountsOf(
  { record: { requester, approval }, votes }: StoredRequest,
  voter: Person,
  gateway: GatewayContext,
): Promise<Pick<Parameters<typeof voteRefusal>[0], "requester" | "approvers">> {
  const approved = votes.filter((one) => one.vote === "approve").map(({ voterId: id }) => ({ id }));
  // Groups count only where one person could meet one need or another
  const isPlain = (approval?.votes?.length ?? 1) < 2;
  if (voter.email === undefined && isPlain) return { requester, approvers: [] };
  const account = ({ id }: { id: string }) => gateway.person(id, requester.teamId);
  return {
    requester: await account(requester),
    approvers: await Promise.all(approved.map(account)),
  };
}

/** The request of a pressed button, for policy. */
export function askedFor(request: StoredRequest, command: ChangeCommand, person: Person): AskedFor {
  const { target, channelId, children, input } = request.record;
  return {
    command,
    input,
    targets: [target],
    person,
    channelId,
    vmNames: (children ?? []).map((child) => child.name),
  };
}

const cardWithinMs = 2000;

/** The request with the place of its card: a press may come before Slack's answer to the post. */
async function requestWithCard(
  id: string,
  gateway: Pick<GatewayContext, "store">,
): Promise<StoredRequest | undefined> {
  const until = performance.now() + cardWithinMs;
  for (;;) {
    const request = await gateway.store.get(id);
    const isBeingPosted = request?.delivered.said["card"]?.startsWith("posting") === true;
    if (!isBeingPosted || performance.now() > until) return request;
    await sleep(50);
  }
}

export const outcomeCallback = "verdict";

/** Asks for a reason before a person resolves an unknown outcome. */
export function reasonModal(request: StoredRequest, happened: boolean): ModalView {
  const { command, id, target } = request.record;
  const result = happened ? "done" : "not done";
  const what = md`${command} of ${name(target.name)} (${name(id)}) will be recorded as ${result} in your name, and ${name(target.name)} can be changed again.`;
  const reason = reasonInput("What did you check? Recorded in the audit trail.");
  return modal(happened ? "It happened" : "It did not happen", [section(what), reason], {
    callback: outcomeCallback,
    metadata: { request: id, happened },
    submit: "Record it",
    close: "Back",
  });
}

/** Resolves an unknown outcome as a person says. */
export async function recordOutcome(
  interaction: Submission,
  gateway: GatewayContext,
): Promise<{ errors: Record<string, string> } | undefined> {
  try {
    const asked = parseJson(interaction.privateMetadata);
    const happened = at(asked, "happened") === true;
    const reason = String(interaction.values["reason"] ?? "").trim();
    if (reason.length < 3) return field("Enter what you checked.");
    const request = await gateway.store.get(textAt(asked, "request"));
    const command = changeNamed(request?.record.command, gateway);
    if (!request || !command) return field("This request no longer exists.");
    if (request.state !== "unknown") throw alreadyResolved(request);
    const person = await gateway.person(interaction.userId, interaction.teamId, { fresh: true });
    await authorize({ ...askedFor(request, command, person), notedAs: "verdict: " }, gateway);
    const moved = await gateway.store.move(request, {
      state: happened ? "done" : "not-applied",
      progress: { ...request.progress, decidedBy: { id: person.id, name: person.name, reason } },
      why: `${happened ? "it happened" : "it did not happen"}, says ${person.id}: ${reason}`,
      actor: person.id,
    });
    if (moved.is !== "moved") return field("Its state just changed. Check the message again.");
    return undefined;
  } catch (error) {
    if (error instanceof UserError) return field(error.message);
    throw error;
  }
}

export function alreadyResolved({ state }: StoredRequest): UserError {
  return new UserError(`Someone already resolved this: ${stateWords(state)}.`);
}

/** An error on the only field. */
function field(text: string): { errors: Record<string, string> } {
  return { errors: { reason: text } };
}
