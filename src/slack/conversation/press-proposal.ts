import { UserError } from "../../errors.ts";
import { onceOfProposal, proposalRefusal } from "../../door/proposals.ts";
import { md, plain, section } from "../../messages/message.ts";
import type { Input } from "../../registry/invocation.ts";
import { parseInvocation } from "../../registry/parse.ts";
import { deedOf } from "../../requests/render/asking.ts";
import type { Press, Submission } from "../receive/interaction.ts";
import { parseJson, textAt } from "../web.ts";
import {
  type Act,
  authorize,
  type BeforeAck,
  changeNamed,
  openOr,
  outdated,
  personOf,
} from "./authorize.ts";
import { modal, reasonInput } from "./form-view.ts";
import { run } from "./run.ts";

export const dismissalCallback = "proposal-dismissal";

/** What stands of it, for this person, in its own message. Throws UserError where nobody can decide it any more. */
async function openProposal(id: string, act: BeforeAck<Press | Submission>) {
  const { interaction, gateway } = act;
  const { proposals, policy } = gateway;
  const proposal = await proposals.get(id);
  const command = changeNamed(proposal?.record.command, gateway);
  if (!proposal || !command) throw outdated();
  const { card } = proposal.delivered;
  if (interaction.kind === "button" && card && interaction.channelId !== card.channelId)
    throw new UserError("This button belongs to another message.");
  const by = { personId: interaction.userId, policy, now: await proposals.now() };
  const refused = proposalRefusal(proposal, command, by);
  if (refused !== undefined) throw new UserError(refused);
  return { proposal, command };
}

/** An ordinary command of whoever presses: what is asked, typed, and approved is the same as when they had typed it. */
export async function runProposal(act: Act<Press>, { proposal: id }: Input): Promise<void> {
  const { proposal, command } = await openProposal(String(id), act);
  const interaction = { ...act.interaction, id: onceOfProposal(proposal.record.id) };
  await run(parseInvocation(command, proposal.record.input), { ...act, interaction });
}

/** Whoever may run it may dismiss it. */
async function authorizeDismissal(id: string, act: BeforeAck<Press | Submission>) {
  const { proposal, command } = await openProposal(id, act);
  if (proposal.state !== "open") throw new UserError("Someone is running this already.");
  const person = await personOf(act);
  const { target, input, channelId } = proposal.record;
  const asked = { command, input, targets: [target], person, channelId, isStop: true };
  await authorize(asked, act.gateway);
  return { proposal, command, person };
}

export async function askDismissal(act: Act<Press>, { proposal: id }: Input): Promise<void> {
  const { proposal, command } = await authorizeDismissal(String(id), act);
  const what = md`*${deedOf(proposal.record, command)}* will not be run.`;
  const reason = reasonInput("Shown on the proposal, told to who proposed it, and recorded.");
  const metadata = { proposal: proposal.record.id };
  const form = { callback: dismissalCallback, metadata, submit: "Dismiss", close: "Back" };
  await openOr(act, modal("Dismiss", [section(what), reason], form));
}

/** Throws UserError. */
export async function dismissProposal(act: BeforeAck<Submission>) {
  const { interaction, gateway } = act;
  const reason = plain(interaction.values["reason"] ?? "", 500);
  if (reason.length < 3) return { errors: { reason: "Enter a reason." } };
  const id = textAt(parseJson(interaction.privateMetadata), "proposal");
  const { proposal, person } = await authorizeDismissal(id, act);
  if (await gateway.proposals.dismiss(proposal, person, reason)) return undefined;
  throw new UserError("This proposal just changed. Check its message.");
}
