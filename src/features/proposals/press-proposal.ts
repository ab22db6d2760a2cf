import { UserError } from "../../errors.ts";
import { md, plain } from "../../messages/markdown.ts";
import { paragraph } from "../../messages/parts.ts";
import { modal } from "../../messages/views.ts";
import type { Input } from "../../registry/invocation.ts";
import { parseInvocation } from "../../registry/parse.ts";
import { describeChange } from "../../core/cards/asking.ts";
import { textAt } from "../../slack/json.ts";
import type { Press, ViewSubmission } from "../../slack/receive/interaction.ts";
import { parseJson } from "../../text/parse-json.ts";
import { reasonInput } from "../../talk/form-view.ts";
import { type Act, type BeforeAck, personOf } from "../../talk/gateway-context.ts";
import { openOr } from "../../talk/reply-with-error.ts";
import { run } from "../../talk/run.ts";
import { askedOthers, proposalsOf } from "./proposals.ts";
import { findProposal } from "./take-proposal.ts";
import { authorizeByLists } from "../../talk/authorize.ts";

export const dismissalCallback = "proposal-dismissal";

/** Finds the proposal whose card was pressed. Throws UserError. */
async function findPressed(
  { interaction, gateway }: Act<Press>,
  { proposal: id }: Input,
  how?: { isToDismiss: boolean },
) {
  const match = await findProposal(String(id), interaction.userId, gateway, how);
  const { card } = match.proposal.delivered;
  if (card && interaction.channelId !== card.channelId)
    throw new UserError("This button belongs to another channel.");
  return match;
}

/**
 * Runs the proposed change as an ordinary command of the person who presses: forms, confirmations
 * and approvals are the same as if they had typed it below the card.
 */
export async function runProposal(act: Act<Press>, value: Input): Promise<void> {
  const { proposal, command } = await findPressed(act, value);
  const { id, by: proposer, input } = proposal.record;
  const asker = "asker" in proposer ? { asker: proposer.asker.id } : {};
  const asked = askedOthers(proposal.record);
  const origin = { kind: "proposal", proposal: id, ...asker, ...(asked && { asked }) } as const;
  const threadTs = proposal.delivered.card?.ts;
  const interaction = { ...act.interaction, ...(threadTs ? { threadTs } : {}) };
  await run(parseInvocation(command, input), { ...act, interaction, origin });
}

type FoundProposal = Awaited<ReturnType<typeof findProposal>>;

/**
 * Checks that this person may dismiss the proposal: those who may run it may, and a person who
 * asked others for it. Throws UserError and Refused.
 */
async function authorizeDismissal(
  { proposal, command }: FoundProposal,
  act: BeforeAck<Press | ViewSubmission>,
) {
  if (proposal.state !== "open") throw new UserError("Someone is running this already.");
  const person = await personOf(act);
  const { by: proposer, target, input } = proposal.record;
  if ("asker" in proposer && proposer.asker.id === person.id) return person;
  await authorizeByLists({ command, input, targets: [target], person }, act.gateway);
  return person;
}

export async function askDismissal(act: Act<Press>, value: Input): Promise<void> {
  const match = await findPressed(act, value, { isToDismiss: true });
  await authorizeDismissal(match, act);
  const { record } = match.proposal;
  const summary = md`*${describeChange(record, match.command)}* will not be run.`;
  const reason = reasonInput("The proposer reads it; recorded in the audit trail.");
  const metadata = { proposal: record.id };
  const form = { callback: dismissalCallback, metadata, submit: "Dismiss", close: "Back" };
  await openOr(act, modal("Dismiss", [paragraph(summary), reason], form));
}

/** Dismisses a proposal with the reason of the form. Throws UserError. */
export async function dismissProposal(act: BeforeAck<ViewSubmission>) {
  const { interaction, gateway } = act;
  const reason = plain(interaction.values["reason"] ?? "", 500);
  if (reason.length < 3) return { errors: { reason: "Enter a reason." } };
  const id = textAt(parseJson(interaction.privateMetadata), "proposal");
  const match = await findProposal(id, interaction.userId, gateway, { isToDismiss: true });
  const person = await authorizeDismissal(match, act);
  if (await proposalsOf(gateway).dismiss(match.proposal, person, reason)) return undefined;
  throw new UserError("This proposal just changed. Check its message.");
}
