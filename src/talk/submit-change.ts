import { attestationInWords } from "../attestation/appraiser.ts";
import { UserError } from "../errors.ts";
import { sentence } from "../messages/card.ts";
import { duration, md, name } from "../messages/markdown.ts";
import { waysRow } from "../messages/parts.ts";
import { type Permit, specify } from "../core/permit/permit.ts";
import { type Command, type DialogFacts, type Target, calledName } from "../registry/define.ts";
import type { Person } from "../registry/invocation.ts";
import { parseInput } from "../registry/parse.ts";
import { newRequestId } from "../core/request/journal.ts";
import { hourlyOf } from "../core/request/rate-limits.ts";
import { type Origin, originKey } from "../core/request/origin.ts";
import { stateWords } from "../core/request/stage.ts";
import { describeChange } from "../core/cards/asking.ts";
import { type Evidence, gatherApprovalFacts } from "../core/submit/approval-facts.ts";
import { targetOfVm } from "../core/submit/resolve-targets.ts";
import { type Details, submit } from "../core/submit/submit.ts";
import { say } from "../slack/error-reply.ts";
import type { Place } from "../slack/web.ts";
import { noteRefusal, refuseWhileFrozen } from "./authorize.ts";
import { chosenSnapshot } from "../core/submit/chosen-snapshot.ts";
import { gatherFacts, labelsOf, unread } from "./dialog-facts.ts";
import { type Act, type GatewayContext, changeNamed } from "./gateway-context.ts";
import { approversOf } from "./approvers-of.ts";
import { raiseByFacts } from "./permit-by-facts.ts";
import { requestGuardOf } from "./service-keys.ts";
import { type PlaceOfRequest, channelForApproval, channelToTell } from "./request-channel.ts";
import { lowerFirst, upperFirst } from "../text/letter-case.ts";

/** What made a request, where it was asked for, and its reason. */
interface Made extends Pick<Details, "threadTs" | "reason"> {
  origin: Origin;
  channelId: string;
}

/**
 * Stores a permitted request with the approvals that its permit requires. A duplicate isn't stored;
 * the person is told the state of the first one. Every request of a person passes here. During a
 * freeze none is stored. `read`: the facts that the permit was decided by; read now when missing.
 * Throws UserError.
 */
export async function submitChange(
  given: Permit,
  { origin, channelId, ...more }: Made,
  { reply, gateway }: Pick<Act, "reply" | "gateway">,
  read?: DialogFacts,
): Promise<{ id: string; isNew: boolean }> {
  const { command, person, target } = given;
  await refuseWhileFrozen({ command, person, targets: [target] }, gateway);
  const facts = read ?? (await factsFor(given, gateway));
  const { prepared, permit } = await withKeptValues(raiseByFacts(given, facts, gateway), gateway);
  const losesVms = command.on === "project" && command.deletes && facts.vms.length > 0;
  const children = losesVms ? { children: facts.vms.map((vm) => targetOfVm(vm, target.name)) } : {};
  const isWaiting = permit.approvals.required > 0;
  const place = { channelId, target, person, origin };
  const shown = isWaiting ? await shownToApprovers(permit, place, facts, prepared, gateway) : {};
  const { store, policy } = gateway;
  const id = newRequestId();
  const draftId = isWaiting ? { draftId: id } : {};
  const { isBreakGlass: breakGlass } = permit;
  await countAgainstLimits({ command, person, target, origin, breakGlass, ...draftId }, gateway);
  const context = { ...gateway, staleAfterMs: policy.timing.staleAfterMs };
  await requestGuardOf.ifAny(gateway)?.(permit, origin, gateway);
  const channelAndCards = { channelId: channelToTell(place, gateway), ...shown };
  const details = { id, ...more, ...children, ...labelsOf(facts), ...channelAndCards };
  const submitted = await submit(permit, origin, details, context);
  if (submitted.isNew) {
    await gateway.contributed.requestMade(submitted.record);
    return submitted;
  }
  // The process that stored the request may have died before it told features.
  const made = await store.get(submitted.id);
  if (made) await gateway.contributed.requestMade(made.record);
  if (isWaiting) await store.leaveDraftPlace(person.id, id);
  const already = "Someone already ran this.";
  await reply.privately(
    await (origin.kind === "proposal"
      ? alreadyRequested(submitted.id, gateway, already)
      : notRepeated(submitted.id, gateway)),
  );
  return submitted;
}

/**
 * Answers a duplicate of a request that is open or was just done. If it is done, a button offers to
 * do it again.
 */
async function notRepeated(id: string, gateway: GatewayContext) {
  const request = await gateway.store.get(id);
  const command = changeNamed(request?.record.command, gateway);
  if (request?.state !== "done" || !command) return alreadyRequested(id, gateway);
  const { verb, done } = command.say;
  const ago = duration((await gateway.store.now()) - request.changedAt);
  const verbDone = lowerFirst(done);
  const text = md`Not repeated: you ${verbDone} ${name(calledName(request.record.target))} ${ago} ago.`;
  const value = JSON.stringify({ request: id });
  const about = calledName(request.record.target);
  const again = { label: `${verb} again`, about, action: "request:again", value };
  return sentence(text, waysRow([again]));
}

/** The channel and thread that messages about a request go to. */
export function placeOf({ channelId, threadTs }: Place) {
  return { channelId, ...(threadTs ? { threadTs } : {}) };
}

/**
 * Facts about the target for its approvers. Without approvals nothing is read, because the gate
 * reads the target anyway.
 */
async function factsFor(
  { command, target, input, approvals }: Permit,
  gateway: GatewayContext,
): Promise<DialogFacts> {
  if (approvals.required === 0) return unread(target, input);
  return gatherFacts(command, target, input, gateway);
}

/**
 * Reads the present values that the command would keep, and puts them into the permit, if the
 * command keeps any. Throws UserError when they can't be read.
 */
export async function withKeptValues(
  permit: Permit,
  gateway: GatewayContext,
): Promise<{ prepared: Evidence; permit: Permit }> {
  const { command, target, input } = permit;
  if (command.on !== "vm" || !command.keeps) return { prepared: [], permit };
  const read = await command.keeps.prepare(target, parseInput(command, input), gateway);
  if (read.kind !== "ready") throw new UserError(asSentence(read.why.text), read.why.hint);
  return { prepared: read.facts, permit: specify(permit, { ...input, values: read.values }) };
}

const asSentence = (why: string) => `${upperFirst(why)}.`;

/**
 * Gathers what the card of a waiting request shows, and the channel for it. Throws UserError when
 * too few people could approve.
 */
async function shownToApprovers(
  permit: Permit,
  place: PlaceOfRequest & { origin: Origin },
  facts: DialogFacts,
  prepared: Evidence,
  gateway: GatewayContext,
): Promise<Pick<Details, "channelId" | "forApprovers">> {
  const { command, target, approvals } = permit;
  const { policy, store } = gateway;
  const { refused, ...byWhom } = await approversOf(permit, place.origin, gateway);
  if (refused) throw new UserError(refused.text, refused.hint);
  const attestation =
    target.kind === "vm"
      ? await attestationInWords(gateway.appraiser, target, policy.timing.httpTimeoutMs)
      : undefined;
  const earlier = await store.recentIds({ targetId: target.id || target.name }, 20);
  const evidence = gatherApprovalFacts({
    ...facts,
    attestation,
    snapshot: chosenSnapshot(facts),
    last: (await store.getMany(earlier)).filter(
      // What happened in another project isn't told to the approvers of this one.
      ({ record }) => record.target.projectId === target.projectId,
    ),
    command: command.name,
    raised: approvals.raised,
    prepared,
  });
  // Approvers are reminded only if the policy has teams.
  const isReminded = Object.keys(policy.teams).length > 0;
  return {
    channelId: channelForApproval(place, gateway),
    forApprovers: { evidence, isReminded, ...byWhom },
  };
}

/**
 * Counts a request against the limits of policy. `draftId` is the ID of a request that will wait
 * for approval: it also takes one of its requester's draft places. Throws UserError over a limit,
 * and records the refusal.
 */
export async function countAgainstLimits(
  asked: {
    command: Command;
    person: Person;
    target: Target;
    origin: Origin;
    breakGlass?: boolean;
    draftId?: string;
  },
  gateway: GatewayContext,
): Promise<void> {
  const { command, person, target, origin, breakGlass, draftId } = asked;
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
    if (draftId !== undefined) await store.takeDraftPlace(person.id, draftId, limits);
  } catch (error) {
    if (error instanceof UserError)
      await noteRefusal({ command, person, targets: [target] }, "limits", gateway);
    throw error;
  }
}

/** Answers a duplicate of a request, or a second press of a button, with the state of the first. */
export async function alreadyRequested(
  id: string,
  gateway: Pick<GatewayContext, "store" | "commands">,
  first = "You already requested this.",
) {
  const request = await gateway.store.get(id);
  const command = changeNamed(request?.record.command, gateway);
  const deed = request && command ? describeChange(request.record, command) : "It";
  const state = request ? stateWords(request.state) : "on record";
  return say(md`${first} Gatehouse didn't run it again.`, md`${deed}: ${state} (${name(id)}).`);
}
