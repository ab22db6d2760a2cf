import { onceOfProposal } from "../../door/proposals.ts";
import { asked, mustAsk, renderConfirm } from "../../door/render-alert.ts";
import { UserError } from "../../errors.ts";
import { md, plain, section } from "../../messages/message.ts";
import { isChange } from "../../registry/define.ts";
import { type Input, withTarget } from "../../registry/invocation.ts";
import { parseInvocation } from "../../registry/parse.ts";
import { deedOf } from "../../requests/render/asking.ts";
import { targetOf } from "../../requests/submit/submit.ts";
import type { Press, Submission } from "../receive/interaction.ts";
import { parseJson, textAt } from "../web.ts";
import {
  type Act,
  authorize,
  type BeforeAck,
  commandNamed,
  openOr,
  outdated,
  personOf,
} from "./authorize.ts";
import { modal, reasonInput } from "./form-view.ts";
import { run } from "./run.ts";
import { alreadyRequested } from "./submit.ts";
import { findProposal } from "./take-proposal.ts";

/**
 * A button of an alert: a command on one of its VMs, as if whoever pressed had typed it, with its result in the thread of the
 * alert. Each button makes one request, however often and by whomever it is pressed.
 */
export async function pressAlert(act: Act<Press>, { alert: of, vm: at, n }: Input): Promise<void> {
  const { interaction, reply, gateway } = act;
  const { channelId, value } = interaction;
  const { alerts, store, policy } = gateway;
  const alert = typeof of === "string" ? await alerts.get(of) : undefined;
  const vm = typeof at === "number" ? alert?.record.vms[at] : undefined;
  const place = alert && (await alerts.placeOf(alert));
  if (!alert || !vm || typeof n !== "number") throw outdated();
  if (channelId !== (place?.channelId ?? alert.record.channelId)) throw outdated();
  // The same for one that is gone and for one that this person doesn't see
  const found = await gateway.inventory.findVm(vm.id, { onlyKnown: true });
  if (!("found" in found) || found.found.id !== vm.id) throw outdated();
  const target = targetOf(found.found);
  const isAsked = interaction.action.endsWith(asked);
  const action = isAsked ? interaction.action.slice(0, -asked.length) : interaction.action;
  const command = commandNamed(action.slice("alert:".length), gateway);
  const threadTs = place?.ts;
  const id = `after:${alert.id}:${vm.id}:${command.name}:${n}`;
  const there = { ...interaction, id, ...(threadTs ? { threadTs } : {}) };
  const invocation = parseInvocation(command, withTarget(command, {}, target));
  if (!isChange(command)) return run(invocation, { ...act, interaction: there });
  if (alert.state === "ended") throw outdated();
  const first = await store.madeBy(id);
  // Noted already, unless its process died right then
  if (first) await alerts.note(alert.id, first.record.id);
  const used = "This button was already used.";
  if (first) return reply.privately(await alreadyRequested(first.record.id, gateway, used));
  if (mustAsk(command, target, policy) === "here" && !isAsked)
    return reply.privately(renderConfirm({ action, value }, command, target));
  await run(invocation, { ...act, interaction: there });
}

export const dismissalCallback = "proposal-dismissal";

/** The proposal whose own card was pressed. Throws UserError. */
async function pressed(
  { interaction, gateway }: Act<Press>,
  { proposal: id }: Input,
  how?: { isToDismiss: boolean },
) {
  const found = await findProposal(String(id), interaction.userId, gateway, how);
  const { card } = found.proposal.delivered;
  if (card && interaction.channelId !== card.channelId)
    throw new UserError("This button belongs to another channel.");
  return found;
}

/** An ordinary command of whoever presses: what is asked, typed, and approved is the same as if they had typed it. */
export async function runProposal(act: Act<Press>, value: Input): Promise<void> {
  const { proposal, command } = await pressed(act, value);
  const interaction = { ...act.interaction, id: onceOfProposal(proposal.record.id) };
  await run(parseInvocation(command, proposal.record.input), { ...act, interaction });
}

type Found = Awaited<ReturnType<typeof findProposal>>;

/** Whoever may run it may dismiss it. Throws UserError. */
async function authorizeDismissal(
  { proposal, command }: Found,
  act: BeforeAck<Press | Submission>,
) {
  if (proposal.state !== "open") throw new UserError("Someone is running this already.");
  const person = await personOf(act);
  const { target, input, channelId } = proposal.record;
  const stop = { command, input, targets: [target], person, channelId, isStop: true };
  await authorize(stop, act.gateway);
  return person;
}

export async function askDismissal(act: Act<Press>, value: Input): Promise<void> {
  const found = await pressed(act, value, { isToDismiss: true });
  await authorizeDismissal(found, act);
  const { record } = found.proposal;
  const what = md`*${deedOf(record, found.command)}* will not be run.`;
  const reason = reasonInput("The proposer reads it; recorded in the audit trail.");
  const metadata = { proposal: record.id };
  const form = { callback: dismissalCallback, metadata, submit: "Dismiss", close: "Back" };
  await openOr(act, modal("Dismiss", [section(what), reason], form));
}

/** Throws UserError. */
export async function dismissProposal(act: BeforeAck<Submission>) {
  const { interaction, gateway } = act;
  const reason = plain(interaction.values["reason"] ?? "", 500);
  if (reason.length < 3) return { errors: { reason: "Enter a reason." } };
  const id = textAt(parseJson(interaction.privateMetadata), "proposal");
  const found = await findProposal(id, interaction.userId, gateway, { isToDismiss: true });
  const person = await authorizeDismissal(found, act);
  if (await gateway.proposals.dismiss(found.proposal, person, reason)) return undefined;
  throw new UserError("This proposal just changed. Check its message.");
}
