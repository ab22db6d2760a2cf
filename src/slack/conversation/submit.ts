import { attestationInWords } from "../../attestation/appraiser.ts";
import { UserError, messageOf } from "../../errors.ts";
import { buttons, duration, firstFew, md, name, plain, sentence } from "../../messages/message.ts";
import { isFullMember, whoAre, channelOfProject, scopeOfChannel } from "../../policy/access.ts";
import { ownerOf, type PolicyRefusal } from "../../policy/refusal.ts";
import {
  calledIn,
  isUsual,
  approversRefusal,
  isSamePerson,
  approvalRule,
  type NeededApprovals,
  rollbackReason,
  oneMore,
  totalOf,
  decideEach,
  needingApproval,
} from "../../policy/approval-rule.ts";
import {
  type Command,
  type DialogFacts,
  calledName,
  type ChangeCommand,
  type Effect,
  type Refusal,
  restoresSnapshot,
  type Seen,
  type Target,
  targetArgument,
} from "../../registry/define.ts";
import {
  type Input,
  type Args,
  type ChangeInvocation,
  type Person,
  rollingOf,
  withoutRolling,
} from "../../registry/invocation.ts";
import { parseInput } from "../../registry/parse.ts";
import { newRequestId } from "../../requests/journal/journal.ts";
import { hourlyOf } from "../../requests/journal/limits.ts";
import { stateWords } from "../../requests/journal/record.ts";
import { deedOf } from "../../requests/render/asking.ts";
import {
  type Evidence,
  gatherApprovalFacts,
  targetOfVm,
  submit,
  type Submission,
  type Several,
  vmOf,
} from "../../requests/submit/submit.ts";
import { say } from "../error-reply.ts";
import type { Interaction } from "../receive/interaction.ts";
import type { Place } from "../web.ts";
import {
  authorize,
  emergency,
  noteRefusal,
  type Act,
  type BeforeAck,
  changeNamed,
  type GatewayContext,
  rules,
} from "./authorize.ts";
import { takeProposal } from "./take-proposal.ts";
import { type ListGaps, mayHide, type Vm } from "../../compute/compute.ts";
import { snapshotName, type KnownSnapshot } from "../../inventory/snapshots.ts";
import { hiddenVms, readTarget } from "../../requests/perform/gate.ts";
import { newRolloutId, type RolloutRecord } from "../../rollouts/rollout.ts";

/**
 * Stores the request of someone who may make it, with the approvals that policy requires; in an emergency it waits for none. A
 * duplicate is answered with its state. Every request of a person passes here: so policy decides here, whatever asked before.
 */
export async function submitChange(
  asked: Submission,
  { reply, gateway }: Pick<Act, "reply" | "gateway">,
  read?: DialogFacts,
): Promise<{ id: string; isNew: boolean }> {
  const { command, input, target, person, channelId, undoes, breakGlass } = asked;
  const how = breakGlass ? emergency : { isUndo: undoes !== undefined };
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
  await takeTurn({ ...submission, id }, gateway);
  const by = { ...gateway, staleAfterMs: policy.timing.staleAfterMs };
  const isProposed = submission.interactionId.startsWith("proposal:");
  const proposal = isProposed ? await takeProposal(submission, gateway) : undefined;
  const alert = /^after:(a-[\w-]+):/.exec(submission.interactionId)?.[1];
  const cause = proposal ?? alert;
  const submitted = await submit({ ...submission, id, ...(cause && { cause }) }, by);
  if (submitted.isNew && alert) await gateway.alerts.note(alert, submitted.id);
  if (submitted.isNew) return submitted;
  if (submission.approval) await store.leaveDraftPlace(person.id, id);
  const already = "Someone already ran this.";
  await reply.privately(
    await (proposal
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

/** Whether it is named after what its button makes: one request, however often and by whomever it is pressed. */
export const makesOne = ({ id }: Pick<Interaction, "id">) => /^(after|proposal):/.test(id);

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

/** The name of the chosen snapshot, which is named by its ID, and when it was taken. */
export function labelsOf(facts: DialogFacts): Pick<Submission, "labels" | "snapshotAt"> {
  const chosen = chosenSnapshot(facts);
  const called = chosen ? snapshotName(chosen, facts.snapshots) : "";
  const { at } = chosen ?? {};
  return { ...(called && { labels: { snapshot: called } }), ...(at && { snapshotAt: at }) };
}

type Counted = "person" | "target" | "interactionId" | "breakGlass" | "approval" | "id";

/** What waits for approval takes one of its requester's places. Throws UserError over a limit of policy, and records it. */
export async function takeTurn(
  asked: Pick<Submission, Counted> & { command: Command },
  gateway: GatewayContext,
): Promise<void> {
  const { command, person, target, interactionId, breakGlass, approval, id } = asked;
  const { store, policy } = gateway;
  const { limits } = policy;
  const hourly = hourlyOf(command, { breakGlass });
  try {
    await store.takeTurn({ personId: person.id, interactionId, hourly, limits });
    if (approval && id !== undefined) await store.takeDraftPlace(person.id, id, limits);
  } catch (error) {
    if (error instanceof UserError)
      await noteRefusal({ command, person, targets: [target] }, "limits", gateway);
    throw error;
  }
}

/**
 * Where others see it: the channel of its team, else the first that policy allows, or that of `alerts`, where that may see the
 * target.
 */
function channelOfOthers(target: Target, { policy }: GatewayContext): string | undefined {
  const { id, name: called = "" } = ownerOf(target);
  const project = { id, name: called };
  const ofTeam = channelOfProject(policy, project);
  if (ofTeam !== undefined) return ofTeam;
  const channel = policy.channels?.[0] ?? policy.alerts?.channel;
  if (channel === undefined) return undefined;
  return (scopeOfChannel(policy, channel)?.sees(project) ?? true) ? channel : undefined;
}

/** Approvals need a channel. What a team decides has its card there, and a message where it was requested. */
function channelForApproval({ channelId, target }: Submission, gateway: GatewayContext): string {
  const { id, name: called = "" } = ownerOf(target);
  const isTeams = channelOfProject(gateway.policy, { id, name: called }) !== undefined;
  if (/^[CG]/.test(channelId) || (isTeams && channelId !== "")) return channelId;
  const channel = channelOfOthers(target, gateway);
  if (channel !== undefined) return channel;
  throw new UserError(
    "This needs approval, and no one else can see it here.",
    "Request it in a channel.",
  );
}

/** The Home tab takes no messages: a change that is pressed there is told where others see it, or else its requester alone. */
function channelToTell(submission: Submission, gateway: GatewayContext): string {
  const { channelId, target, person, approval } = submission;
  if (channelId !== "" || approval) return channelId;
  return channelOfOthers(target, gateway) ?? person.id;
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

/** More are only counted. */
const maxNamed = 20;

/** Who could approve what this person requests; `refused`: why nobody could, known before anything is typed. */
export async function approversOf(
  { votes, raised }: Needed,
  requesterId: string,
  gateway: GatewayContext,
) {
  if (votes.length === 0) return {};
  const { nameOf, ourTeamId, policy } = gateway;
  const entries = votes.flatMap(({ from }) => from);
  await gateway.learnNames(entries);
  const membersOf = await gateway.membersOf(entries);
  const read = (id: string) => gateway.person(id, ourTeamId).catch(() => undefined);
  const requester = (await read(requesterId)) ?? { id: requesterId };
  const unable = new Set<string>();
  const needs = await Promise.all(
    votes.map(async (need) => {
      const { everyone, users, groups } = whoAre(need.from);
      const ids = new Set([...users, ...groups.flatMap((group) => membersOf(group) ?? [])]);
      ids.delete(requesterId);
      const people = await Promise.all([...ids].slice(0, maxNamed).map(read));
      const who = people.flatMap((one) => {
        // Slack can't say: not named, and not counted out
        if (!one) return [];
        if (isFullMember(one, ourTeamId) && !isSamePerson(one, requester))
          return [{ id: one.id, name: one.name }];
        unable.add(one.id);
        return [];
      });
      return { called: calledIn(need, nameOf), ...(everyone ? {} : { who }) };
    }),
  );
  const refused = approversRefusal({ votes, requesterId, membersOf, unable, nameOf });
  if (!refused) return isUsual(policy, votes) ? { who: needs[0]?.who } : { needs };
  if (raised === undefined) return { refused };
  const way = `One of these is added because ${raised}. Choose another snapshot: \`/vm snapshots\` lists those that Gatehouse took.`;
  return { refused: { ...refused, hint: `${way} ${refused.hint}` } };
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
  const read = await readTarget(target, gateway);
  const { seen, vms } = read;
  const hidden = hiddenVms(read);
  if (hidden !== undefined)
    throw new UserError(
      `Nothing was done: ${hidden}.`,
      "Try again later. If it stays so, whoever runs the compute service must repair that record.",
    );
  const ids = target.kind === "vm" ? [target.id] : vms.slice(0, 50).map(({ id }) => id);
  const snapshots = await Promise.all(ids.map((id) => gateway.snapshots.of(id)));
  const { snapshot } = input;
  const owner =
    typeof snapshot === "string" ? await gateway.snapshots.ownerOf(snapshot) : undefined;
  const pinned = await pinnedAmong([target], gateway);
  return {
    ...unread(target, input),
    isPinned: pinned.has(target.id),
    ...(owner !== undefined && owner !== target.id ? { foreignSnapshotOf: owner } : {}),
    seen: Array.isArray(seen) ? undefined : (seen as DialogFacts["seen"]),
    vms,
    snapshots: snapshots.flat(),
  };
}

/** The IDs of those of these that are pinned. */
export async function pinnedAmong(targets: readonly Target[], { appraiser }: GatewayContext) {
  const vms = targets.filter(({ kind }) => kind === "vm");
  const pins = await Promise.all(vms.map((vm) => appraiser.pinsOf(vm)));
  return new Set(vms.flatMap(({ id }, n) => (pins[n]?.from === "nowhere" ? [] : [id])));
}

/** What is known without a read: enough for what needs no approval, because the gate reads anyway. */
export function unread(target: Target, input: Input): DialogFacts {
  return { target, seen: undefined, vms: [], snapshots: [], input };
}

/** Where projects and VMs are, the most used first. */
export async function regionsKnown({ inventory }: GatewayContext): Promise<readonly string[]> {
  const all = [...(await inventory.projects()), ...(await inventory.vms())];
  const counts = Map.groupBy(all, ({ region }) => region ?? "");
  counts.delete("");
  return [...counts.entries()].toSorted(([, a], [, b]) => b.length - a.length).map(([one]) => one);
}

/** Why the state of the target doesn't allow it. */
export function notNow(command: ChangeCommand, { seen }: DialogFacts): Refusal | undefined {
  const effect: Effect<Seen, Args> = command.effect;
  return seen && effect.notNow?.(seen);
}

type Needed = NeededApprovals & { raised?: string };

/** The approvals that policy requires, and one more where a restore would change the measurement or is old. */
export function neededApprovals(
  command: ChangeCommand,
  facts: DialogFacts,
  gateway: Pick<GatewayContext, "policy" | "now">,
): Needed {
  const { target, seen, input } = facts;
  const vmNames = facts.vms.map((vm) => vm.name);
  const needed = approvalRule(gateway.policy, { command, targets: [target], input, vmNames });
  if (!restoresSnapshot(command) || needed.required === 0 || input["snapshot"] === undefined)
    return needed;
  const raised = rollbackReason({
    snapshot: chosenSnapshot(facts),
    measurementNow: seen && "projectId" in seen ? seen.attestation?.measurement : undefined,
    maxAgeMs: gateway.policy.attestation.maxSnapshotAgeMs,
    now: gateway.now(),
  });
  if (!raised) return needed;
  const votes = oneMore(needed.votes);
  return { ...needed, votes, required: totalOf(votes), raised };
}

function chosenSnapshot({ snapshots, input }: DialogFacts): KnownSnapshot | undefined {
  const words = input["snapshot"];
  return snapshots.find(({ id, name: called }) => id !== "" && (id === words || called === words));
}

/**
 * What one command on several VMs would do: reads their state and stores the plan, which runs nothing before it is confirmed.
 * Throws UserError when no VM is eligible, or one needs approval.
 */
export async function planRollout(
  invocation: ChangeInvocation,
  several: Several,
  person: Person,
  { interaction, gateway }: BeforeAck,
): Promise<{ record: RolloutRecord; targets: readonly Target[] }> {
  const { command, input } = invocation;
  const { channelId, threadTs } = interaction;
  const asked = { command, input, targets: several.targets, person, channelId };
  const { allowed, refused } = decideEach(rules(asked, gateway));
  for (const [rule, all] of Map.groupBy(refused, ({ by }) => by.rule))
    await noteRefusal({ ...asked, targets: all.map(({ target }) => target) }, rule, gateway);
  const read = await readNow(allowed, gateway);
  const seen = allowed.flatMap(({ id }) => read.get(id) ?? []);
  const targets = seen.filter((target) => ineligible(invocation, target) === undefined);
  const skipped = [
    ...refused.map(({ target, by }) => ({ target, why: refusedWords(by) })),
    ...allowed.map((target) => ({ target, why: ineligible(invocation, read.get(target.id)) })),
  ].flatMap(({ target, why }) => (why === undefined ? [] : [{ name: calledName(target), why }]));
  if (targets.length === 0) {
    const reasons = [...new Set(skipped.map(({ why }) => why))].slice(0, 5).join("; ");
    throw new UserError(
      `None of the ${several.targets.length} VMs is eligible to ${command.say.verb.toLowerCase()}: ${reasons}.`,
      "Nothing was done.",
    );
  }
  const needing = needingApproval(gateway.policy, { command, targets });
  if (needing) {
    const names = firstFew(needing.targets.map(calledName), 5);
    throw new UserError(
      `${names} can't be part of a rollout: ${needing.why}.`,
      "Request those one by one; each approval is for one VM. Nothing was done.",
    );
  }
  const named = targetArgument(command)?.key ?? "";
  const { [named]: _targets, ...own } = withoutRolling(command, input);
  const record: RolloutRecord = {
    id: newRolloutId(),
    command: command.name,
    input: own,
    words: plain(several.words, 200),
    options: rollingOf(command, input, targets.length),
    total: targets.length,
    ...(several.isEverything ? { isEverything: several.isEverything } : {}),
    requester: { id: person.id, teamId: person.teamId, name: person.name },
    ...placeOf({ channelId: channelId || person.id, threadTs }),
    policyVersion: gateway.policyVersion,
    leftOut: skipped,
    createdAt: gateway.now(),
  };
  await gateway.rollouts.plan(record, targets);
  return { record, targets };
}

/** With more projects a form uses known data; the gate reads each VM anyway. */
const maxReads = 50;

/** The current state of the targets by their IDs, from one read per project; without those that are gone. */
async function readNow(targets: readonly Target[], { compute, log }: GatewayContext) {
  const ofProjects = Map.groupBy(targets, ({ projectId }) => projectId);
  const now = new Map(targets.map((target) => [target.id, target]));
  if (ofProjects.size > maxReads) return now;
  const readProject = async ([projectId, known]: [string, Target[]]): Promise<void> => {
    try {
      let gaps: ListGaps | undefined;
      const onGaps = (found: ListGaps) => void (gaps = found);
      const list = await compute.projects.vms(projectId, { onGaps });
      const vms = new Map(list.map((vm) => [vm.id, vm]));
      for (const { id, name: called, sharesName, projectName = projectId } of known) {
        const vm = vms.get(id);
        if (vm)
          now.set(id, { ...targetOfVm(vm, projectName), ...(sharesName ? { sharesName } : {}) });
        else if (!mayHide(gaps, called)) now.delete(id);
      }
    } catch (error) {
      log.info("roll.unread", { project: projectId, why: messageOf(error) });
    }
  };
  await Promise.all([...ofProjects].map(readProject));
  return now;
}

/** Why policy refuses a VM that others of the rollout needn't be refused for. */
function refusedWords({ rule, toldAs }: PolicyRefusal): string {
  const [what, glob] = rule.split(" ");
  return what === "protect"
    ? `protected by ${glob ?? "a rule"}`
    : `you aren't in ${toldAs ?? rule}`;
}

/** Why a VM is skipped: it is gone, in the wrong state, or already as wanted. */
function ineligible({ command, args }: ChangeInvocation, target?: Target): string | undefined {
  if (!target) return "gone";
  const effect = command.effect as Effect<Vm, Args>;
  const seen = vmOf(target);
  if (args && effect.already?.(seen, args)) return `${target.status}, nothing to change`;
  return effect.notNow?.(seen) && target.status;
}
