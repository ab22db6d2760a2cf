import { attestationInWords } from "../../attestation/appraiser.ts";
import { UserError } from "../../errors.ts";
import { buttons, duration, md, name, sentence } from "../../messages/message.ts";
import { type Command, type DialogFacts, calledName } from "../../registry/define.ts";
import type { Input } from "../../registry/invocation.ts";
import { parseInput } from "../../registry/parse.ts";
import { newRequestId } from "../../requests/journal/journal.ts";
import { hourlyOf } from "../../requests/journal/rate-limits.ts";
import { originKey, undoneBy } from "../../requests/journal/origin.ts";
import { stateWords } from "../../requests/journal/stage.ts";
import { deedOf } from "../../requests/render/asking.ts";
import { type Evidence, gatherApprovalFacts } from "../../requests/submit/approval-facts.ts";
import { targetOfVm } from "../../requests/submit/resolve-targets.ts";
import { type Submission, submit } from "../../requests/submit/submit.ts";
import { say } from "../error-reply.ts";
import type { Place } from "../web.ts";
import { authorize, emergency, noteRefusal } from "./authorize.ts";
import { chosenSnapshot, gatherFacts, labelsOf, unread } from "./dialog-facts.ts";
import { type Act, type GatewayContext, changeNamed } from "./gateway-context.ts";
import { approversOf, neededApprovals } from "./needed-approvals.ts";
import { channelForApproval, channelToTell } from "./request-channel.ts";
import { takeProposal } from "./take-proposal.ts";

/**
 * Stores the request of someone who may make it, with the approvals that policy requires; in an emergency it waits for none. A
 * duplicate is answered with its state. Every request of a person passes here: so policy decides here, whatever asked before.
 */
export async function submitChange(
  asked: Submission,
  { reply, gateway }: Pick<Act, "reply" | "gateway">,
  read?: DialogFacts,
): Promise<{ id: string; isNew: boolean }> {
  const { command, input, target, person, channelId, origin, breakGlass } = asked;
  const how = breakGlass ? emergency : { isUndo: undoneBy(asked) !== undefined };
  await authorize({ command, input, targets: [target], person, channelId, ...how }, gateway);
  const known = read ?? unread(target, input);
  const isPlain = read !== undefined || neededApprovals(command, known, gateway).required === 0;
  const facts = isPlain ? known : await gatherFacts(command, target, input, gateway);
  const { prepared, ...more } = await prepare(asked, gateway);
  const losesVms = command.on === "project" && command.deletes && facts.vms.length > 0;
  const children = losesVms ? { children: facts.vms.map((vm) => targetOfVm(vm, target.name)) } : {};
  const whole = { ...asked, ...more, ...children, ...labelsOf(facts) };
  const approvable = breakGlass ? whole : await withApprovals(whole, facts, prepared, gateway);
  const submission = { ...approvable, channelId: channelToTell(approvable, gateway) };
  const { store, policy } = gateway;
  const id = newRequestId();
  await countAgainstLimits({ ...submission, id }, gateway);
  const by = { ...gateway, staleAfterMs: policy.timing.staleAfterMs };
  const isProposed = await takeProposal(submission, gateway);
  const submitted = await submit({ ...submission, id }, by);
  if (submitted.isNew && origin.kind === "alert")
    await gateway.alerts.note(origin.alert, submitted.id);
  if (submitted.isNew) return submitted;
  if (submission.approval) await store.leaveDraftPlace(person.id, id);
  const already = "Someone already ran this.";
  await reply.privately(
    await (isProposed
      ? alreadyRequested(submitted.id, gateway, already)
      : notRepeated(submitted.id, gateway)),
  );
  return submitted;
}

/** For an equal request that is open or was just done: what was done is done again by a press of its own. */
async function notRepeated(id: string, gateway: GatewayContext) {
  const request = await gateway.store.get(id);
  const command = changeNamed(request?.record.command, gateway);
  if (request?.state !== "done" || !command) return alreadyRequested(id, gateway);
  const { verb, done } = command.say;
  const ago = duration((await gateway.store.now()) - request.changedAt);
  const what = `${done.slice(0, 1).toLowerCase()}${done.slice(1)}`;
  const text = md`Not repeated: you ${what} ${name(calledName(request.record.target))} ${ago} ago.`;
  const value = JSON.stringify({ request: id });
  const again = { label: `${verb} again`, action: "request:again", value };
  return sentence(text, buttons([again]));
}

/** Where messages about the request go. */
export function placeOf({ channelId, threadTs }: Place) {
  return { channelId, ...(threadTs ? { threadTs } : {}) };
}

/** What would be kept, as it is now, where the command keeps something. */
async function prepare(
  { command, target, input }: Submission,
  gateway: GatewayContext,
): Promise<{ prepared: Evidence; input?: Input }> {
  if (command.on !== "vm" || !command.keeps) return { prepared: [] };
  const read = await command.keeps.prepare(target, parseInput(command, input), gateway);
  if (read.is !== "ready") throw new UserError(asSentence(read.why.text), read.why.hint);
  return { prepared: read.facts, input: { ...input, values: read.values } };
}

const asSentence = (why: string) => `${why.slice(0, 1).toUpperCase()}${why.slice(1)}.`;

async function withApprovals(
  submission: Submission,
  facts: DialogFacts,
  prepared: Evidence,
  gateway: GatewayContext,
): Promise<Submission> {
  const { command, target, person } = submission;
  const { policy, store } = gateway;
  const needed = neededApprovals(command, facts, gateway);
  if (needed.required === 0) return submission;
  const { refused, ...byWhom } = await approversOf(needed, person.id, gateway);
  if (refused) throw new UserError(refused.text, refused.hint);
  const attestation =
    target.kind === "vm"
      ? await attestationInWords(gateway.appraiser, target, policy.timing.httpTimeoutMs)
      : undefined;
  const evidence = gatherApprovalFacts({
    ...facts,
    attestation,
    snapshot: chosenSnapshot(facts),
    last: await store.getMany(await store.recentIds({ targetId: target.id || target.name }, 20)),
    command: command.name,
    raised: needed.raised,
    prepared,
  });
  const { required, votes, expiresMs, why } = needed;
  // A file without teams works as it did before there were any
  const isReminded = Object.keys(policy.teams).length > 0;
  return {
    ...submission,
    channelId: channelForApproval(submission, gateway),
    approval: { required, votes, expiresMs, why, evidence, isReminded, ...byWhom },
  };
}

type Counted = "person" | "target" | "origin" | "breakGlass" | "approval" | "id";

/** What waits for approval takes one of its requester's places. Throws UserError over a limit of policy, and records it. */
export async function countAgainstLimits(
  asked: Pick<Submission, Counted> & { command: Command },
  gateway: GatewayContext,
): Promise<void> {
  const { command, person, target, origin, breakGlass, approval, id } = asked;
  const { store, policy } = gateway;
  const { limits } = policy;
  const hourly = hourlyOf(command, { breakGlass, origin });
  try {
    await store.countAgainstLimits({
      personId: person.id,
      holder: originKey(origin),
      hourly,
      limits,
    });
    if (approval && id !== undefined) await store.takeDraftPlace(person.id, id, limits);
  } catch (error) {
    if (error instanceof UserError)
      await noteRefusal({ command, person, targets: [target] }, "limits", gateway);
    throw error;
  }
}

/** For a duplicate of a request, or the second press of a button. */
export async function alreadyRequested(
  id: string,
  gateway: Pick<GatewayContext, "store" | "commands">,
  first = "You already requested this.",
) {
  const request = await gateway.store.get(id);
  const command = changeNamed(request?.record.command, gateway);
  const what = request && command ? deedOf(request.record, command) : "It";
  const state = request ? stateWords(request.state) : "on record";
  return say(md`${first} Gatehouse didn't run it again.`, md`${what}: ${state} (${name(id)}).`);
}
