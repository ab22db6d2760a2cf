import type { Vm } from "../../compute/compute.ts";
import { UserError } from "../../errors.ts";
import type { KnownSnapshot } from "../../inventory/snapshots.ts";
import type { Message } from "../../messages/message.ts";
import { md, name } from "../../messages/text.ts";
import { approvalRule, type NeededApprovals, rollbackReason } from "../../policy/approval-rule.ts";
import { ownerOf } from "../../policy/judged.ts";
import { scopeOfChannel } from "../../policy/scope.ts";
import { channelOfProject } from "../../policy/teams.ts";
import { isUsual, oneMore, totalOf } from "../../policy/vote-needs.ts";
import type {
  ChangeCommand,
  Command,
  DialogFacts,
  Effect,
  Refusal,
  Seen,
  Target,
} from "../../registry/define.ts";
import type { Args, Input } from "../../registry/invocation.ts";
import { parseInput } from "../../registry/parse.ts";
import { readTarget } from "../../requests/perform/gate.ts";
import { attestationInWords } from "../../attestation/appraiser.ts";
import { type Evidence, gatherApprovalFacts } from "../../requests/submit/approval-facts.ts";
import { newRequestId } from "../../requests/journal/journal.ts";
import { hourlyOf } from "../../requests/journal/limits.ts";
import { stateWords } from "../../requests/journal/record.ts";
import { submit, type Submission } from "../../requests/submit/submit.ts";
import { deedOf } from "../../requests/render/asking.ts";
import { say } from "../error-reply.ts";
import type { Interaction, Reply } from "../receive/interaction.ts";
import { approversFor, namedIn, tooFewApprovers } from "./approvers.ts";
import { authorize, noteRefusal } from "./authorize.ts";
import { changeNamed, type GatewayContext } from "./gateway-context.ts";
import { targetOfVm } from "../../requests/submit/resolve.ts";

/**
 * Stores the request of someone who may make it, with the approvals that policy requires. False for a duplicate, which is answered
 * with its state. Every request of a person passes here, or break-glass: so policy decides here, whatever asked before.
 */
export async function submitChange(
  asked: Submission,
  facts: DialogFacts,
  reply: Pick<Reply, "privately">,
  gateway: GatewayContext,
): Promise<boolean> {
  const { command, input, target, person, channelId, undoes } = asked;
  const isUndo = undoes !== undefined;
  await authorize({ command, input, targets: [target], person, channelId, isUndo }, gateway);
  const { prepared, ...more } = await prepare(asked, gateway);
  const whole = { ...asked, ...more, ...childrenOf(asked, facts), ...labelsOf(facts) };
  const submission = await withApprovals(whole, facts, prepared, gateway);
  await takeTurn(submission, gateway);
  const submitted = await submitInTurn(submission, gateway);
  if (!submitted.isNew) await reply.privately(await alreadyRequested(submitted.id, gateway));
  return submitted.isNew;
}

/** Where messages about the request go. */
export function placeOf(
  { channelId, threadTs, responseUrl }: Interaction,
  gateway: Pick<GatewayContext, "seal">,
): Pick<Submission, "channelId" | "threadTs" | "sealedResponseUrl"> {
  return {
    channelId,
    ...(threadTs ? { threadTs } : {}),
    ...(responseUrl ? { sealedResponseUrl: gateway.seal(responseUrl) } : {}),
  };
}

/** The VMs that are deleted with a project. */
export function childrenOf(
  { command, target }: Pick<Submission, "command" | "target">,
  { vms }: Pick<DialogFacts, "vms">,
): Pick<Submission, "children"> {
  if (command.on !== "project" || !command.deletes || vms.length === 0) return {};
  return { children: vms.map((vm) => targetOfVm(vm, target.name)) };
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
  const needed = neededApprovals(command, target, facts, gateway);
  if (needed.required === 0) return submission;
  const refused = await tooFewApprovers(needed, person.id, gateway);
  if (refused) throw new UserError(refused.text, refused.hint);
  const last = await gateway.store.getMany(
    await gateway.store.recentIds({ targetId: target.id || target.name }, 20),
  );
  const evidence = gatherApprovalFacts({
    seen: facts.seen,
    vms: facts.vms,
    attestation:
      target.kind === "vm"
        ? await attestationInWords(gateway.appraiser, target, gateway.policy.timing.httpTimeoutMs)
        : undefined,
    snapshot: chosenSnapshot(facts),
    last,
    command: command.name,
    now: gateway.now(),
    raised: needed.raised,
    foreignSnapshotOf: facts.foreignSnapshotOf,
    prepared,
  });
  const { required, votes, expiresMs, why } = needed;
  const channelId = channelForApproval(submission, gateway);
  const byWhom = isUsual(gateway.policy, votes)
    ? { who: await approversFor(votes, person.id, gateway) }
    : { needs: await namedIn(votes, person.id, gateway) };
  // A file without teams works as it did before there were any
  const isReminded = Object.keys(gateway.policy.teams).length > 0;
  return {
    ...submission,
    channelId,
    approval: { required, votes, expiresMs, why, evidence, isReminded, ...byWhom },
  };
}

/** The name of the chosen snapshot, which is named by its ID. */
export function labelsOf(facts: DialogFacts): Pick<Submission, "labels"> {
  const { name: called = "" } = chosenSnapshot(facts) ?? {};
  return called === "" ? {} : { labels: { snapshot: called } };
}

/** What waits for approval takes one of its requester's places. */
async function submitInTurn(submission: Submission, gateway: GatewayContext) {
  const by = { ...gateway, staleAfterMs: gateway.policy.timing.staleAfterMs };
  if (!submission.approval) return submit(submission, by);
  const { store, policy } = gateway;
  const personId = submission.person.id;
  const id = newRequestId();
  await noted(submission, gateway, () => store.takeDraftPlace(personId, id, policy.limits));
  const submitted = await submit({ ...submission, id }, by);
  if (!submitted.isNew) await store.leaveDraftPlace(personId, id);
  return submitted;
}

type Turn = Pick<Submission, "person" | "target" | "interactionId" | "breakGlass"> & {
  command: Command;
};

/** Throws UserError over a limit of policy, and records it. */
export async function takeTurn(asked: Turn, gateway: GatewayContext): Promise<void> {
  const { command, person, interactionId, breakGlass } = asked;
  const turn = {
    personId: person.id,
    interactionId,
    hourly: hourlyOf(command, { breakGlass }),
    limits: gateway.policy.limits,
  };
  await noted(asked, gateway, () => gateway.store.takeTurn(turn));
}

async function noted(
  { command, person, target }: Pick<Turn, "command" | "person" | "target">,
  gateway: GatewayContext,
  take: () => Promise<void>,
): Promise<void> {
  try {
    await take();
  } catch (error) {
    if (error instanceof UserError)
      await noteRefusal({ command, person, targets: [target] }, "limits", gateway);
    throw error;
  }
}

/**
 * Approvals need a channel: what was requested on the Home tab goes to that of its team, else to the first that policy
 * allows, where that may see the target.
 */
function channelForApproval(
  { channelId, target }: Pick<Submission, "channelId" | "target">,
  { policy }: Pick<GatewayContext, "policy">,
): string {
  const { id, name: called = "" } = ownerOf(target);
  const project = { id, name: called };
  if (/^[CG]/.test(channelId) || channelOfProject(policy, project)) return channelId;
  const channel = policy.channels?.[0] ?? policy.alerts?.channel;
  if (channel !== undefined && (scopeOfChannel(policy, channel)?.sees(project) ?? true))
    return channel;
  throw new UserError(
    "This needs approval, and no one else can see it here.",
    "Request it in a channel.",
  );
}

/** For a duplicate of a request, or the second press of a button. */
export async function alreadyRequested(
  id: string,
  gateway: Pick<GatewayContext, "store" | "commands">,
  first = "You already requested this.",
): Promise<Message> {
  const request = await gateway.store.get(id);
  const command = changeNamed(request?.record.command, gateway);
  const what = request && command ? deedOf(request.record, command) : "It";
  const state = request ? stateWords(request.state) : "on record";
  return say(md`${first} Gatehouse didn't run it again.`, md`${what}: ${state} (${name(id)}).`);
}

/** What a person should see before confirming, read now. */
export async function gatherFacts(
  command: ChangeCommand,
  target: Target,
  input: Input,
  gateway: GatewayContext,
): Promise<DialogFacts> {
  if (command.on === "new-project")
    return { ...unread(target, input), regions: await regionsKnown(gateway) };
  const { seen, vms } = await readTarget(target, gateway);
  const ofVms: readonly Pick<Vm, "id">[] = target.kind === "vm" ? [{ id: target.id }] : vms;
  const snapshots = (
    await Promise.all(ofVms.slice(0, 50).map(({ id }) => gateway.snapshots.of(id)))
  ).flat();
  const owner =
    typeof input["snapshot"] === "string"
      ? await gateway.snapshots.ownerOf(input["snapshot"])
      : undefined;
  return {
    ...(owner !== undefined && owner !== target.id ? { foreignSnapshotOf: owner } : {}),
    target,
    seen: Array.isArray(seen) ? undefined : (seen as DialogFacts["seen"]),
    vms,
    snapshots,
    input,
  };
}

/** Where projects and VMs are, the most used first. */
export async function regionsKnown({
  inventory,
}: Pick<GatewayContext, "inventory">): Promise<readonly string[]> {
  const all = [...(await inventory.projects()), ...(await inventory.vms())];
  const counts = Map.groupBy(all, ({ region }) => region ?? "");
  counts.delete("");
  return [...counts.entries()].toSorted(([, a], [, b]) => b.length - a.length).map(([one]) => one);
}

/** Reads nothing for what needs no approval: the gate reads anyway. */
export async function gatherIfNeeded(
  command: ChangeCommand,
  target: Target,
  input: Input,
  gateway: GatewayContext,
): Promise<DialogFacts> {
  const facts = unread(target, input);
  if (neededApprovals(command, target, facts, gateway).required === 0) return facts;
  return gatherFacts(command, target, input, gateway);
}

function unread(target: Target, input: Input): DialogFacts {
  return { target, seen: undefined, vms: [], snapshots: [], input };
}

/** Why the state of the target doesn't allow it. */
export function notNow(command: ChangeCommand, { seen }: DialogFacts): Refusal | undefined {
  const effect: Effect<Seen, Args> = command.effect;
  return seen && effect.notNow?.(seen);
}

export type Needed = NeededApprovals & { raised?: string };

/** The approvals that policy requires, and one more where a restore would change the measurement or is old. */
export function neededApprovals(
  command: ChangeCommand,
  target: Target,
  facts: Pick<DialogFacts, "seen" | "vms" | "snapshots" | "input">,
  gateway: Pick<GatewayContext, "policy" | "now">,
): Needed {
  const vmNames = facts.vms.map((vm) => vm.name);
  const { input } = facts;
  const needed = approvalRule(gateway.policy, { command, targets: [target], input, vmNames });
  if (command.on !== "vm" || command.snapshot !== "restores" || needed.required === 0)
    return needed;
  if (facts.input["snapshot"] === undefined) return needed;
  const vm = facts.seen && "projectId" in facts.seen ? facts.seen : undefined;
  const raised = rollbackReason({
    snapshot: chosenSnapshot(facts),
    measurementNow: vm?.attestation?.measurement,
    maxAgeMs: gateway.policy.attestation.maxSnapshotAgeMs,
    now: gateway.now(),
  });
  if (!raised) return needed;
  const votes = oneMore(needed.votes);
  return { ...needed, votes, required: totalOf(votes), raised };
}

function chosenSnapshot({
  snapshots,
  input,
}: Pick<DialogFacts, "snapshots" | "input">): KnownSnapshot | undefined {
  const words = input["snapshot"];
  return snapshots.find(({ id, name: called }) => id !== "" && (id === words || called === words));
}
