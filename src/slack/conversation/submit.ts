import { attestationInWords } from "../../attestation/appraiser.ts";
import { UserError } from "../../errors.ts";
import type { Message } from "../../messages/message.ts";
import { md, name } from "../../messages/text.ts";
import { isFullMember, whoAre } from "../../policy/access.ts";
import { ownerOf } from "../../policy/judged.ts";
import { calledIn } from "../../policy/need-words.ts";
import { scopeOfChannel } from "../../policy/scope.ts";
import { channelOfProject } from "../../policy/teams.ts";
import { isUsual, type VoteNeed } from "../../policy/vote-needs.ts";
import { approversRefusal, isSamePerson } from "../../policy/vote.ts";
import type { Command, DialogFacts } from "../../registry/define.ts";
import type { Input } from "../../registry/invocation.ts";
import { parseInput } from "../../registry/parse.ts";
import { newRequestId } from "../../requests/journal/journal.ts";
import { hourlyOf } from "../../requests/journal/limits.ts";
import { stateWords } from "../../requests/journal/record.ts";
import { deedOf } from "../../requests/render/asking.ts";
import { type Evidence, gatherApprovalFacts } from "../../requests/submit/approval-facts.ts";
import { targetOfVm } from "../../requests/submit/resolve.ts";
import { submit, type Submission } from "../../requests/submit/submit.ts";
import { say } from "../error-reply.ts";
import { authorize, emergency, noteRefusal } from "./authorize.ts";
import { type Act, type BeforeAck, changeNamed, type GatewayContext } from "./gateway-context.ts";
import { chosenSnapshot, gatherFacts, type Needed, neededApprovals, unread } from "./plan.ts";

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
  const whole = { ...asked, ...more, ...childrenOf(asked, facts), ...labelsOf(facts) };
  const submission = breakGlass ? whole : await withApprovals(whole, facts, prepared, gateway);
  const { store, policy } = gateway;
  const id = newRequestId();
  await takeTurn({ ...submission, id }, gateway);
  const by = { ...gateway, staleAfterMs: policy.timing.staleAfterMs };
  const submitted = await submit({ ...submission, id }, by);
  if (submitted.isNew) return submitted;
  if (submission.approval) await store.leaveDraftPlace(person.id, id);
  await reply.privately(await alreadyRequested(submitted.id, gateway));
  return submitted;
}

/** Where messages about the request go. */
export function placeOf({
  interaction: { channelId, threadTs, responseUrl },
  gateway,
}: BeforeAck): Pick<Submission, "channelId" | "threadTs" | "sealedResponseUrl"> {
  return {
    channelId,
    ...(threadTs ? { threadTs } : {}),
    ...(responseUrl ? { sealedResponseUrl: gateway.seal(responseUrl) } : {}),
  };
}

/** The VMs that are deleted with a project. */
function childrenOf(
  { command, target }: Submission,
  { vms }: DialogFacts,
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
    now: gateway.now(),
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

/** The name of the chosen snapshot, which is named by its ID. */
export function labelsOf(facts: DialogFacts): Pick<Submission, "labels"> {
  const { name: called = "" } = chosenSnapshot(facts) ?? {};
  return called === "" ? {} : { labels: { snapshot: called } };
}

type Turn = Pick<Submission, "person" | "target" | "interactionId" | "breakGlass" | "approval"> & {
  command: Command;
  /** Of the request: what waits for approval takes one of its requester's places. */
  id?: string;
};

/** Throws UserError over a limit of policy, and records it. */
export async function takeTurn(asked: Turn, gateway: GatewayContext): Promise<void> {
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
 * Approvals need a channel: what was requested on the Home tab goes to that of its team, else to the first that policy
 * allows, where that may see the target.
 */
function channelForApproval(
  { channelId, target }: Submission,
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
  const readAll = async ({ from }: VoteNeed): Promise<{ id: string; name: string }[]> => {
    const { users, groups } = whoAre(from);
    const ids = new Set([...users, ...groups.flatMap((group) => membersOf(group) ?? [])]);
    ids.delete(requesterId);
    const people = await Promise.all([...ids].slice(0, maxNamed).map(read));
    return people.flatMap((one) => {
      // Slack can't say: not named, and not counted out
      if (!one) return [];
      if (isFullMember(one, ourTeamId) && !isSamePerson(one, requester))
        return [{ id: one.id, name: one.name }];
      unable.add(one.id);
      return [];
    });
  };
  const needs = await Promise.all(
    votes.map(async (need) => {
      const who = await readAll(need);
      return { called: calledIn(need, nameOf), ...(whoAre(need.from).everyone ? {} : { who }) };
    }),
  );
  const refused = approversRefusal({ votes, requesterId, membersOf, unable, nameOf });
  if (!refused) return isUsual(policy, votes) ? { who: needs[0]?.who } : { needs };
  if (raised === undefined) return { refused };
  const way = `One of these is added because ${raised}. Choose another snapshot: \`/vm snapshots\` lists those that Gatehouse took.`;
  return { refused: { ...refused, hint: `${way} ${refused.hint}` } };
}
