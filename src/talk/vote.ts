import type { Journal } from "../core/request/journal.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { ModalView } from "@slack/types";
import { type VoteOutcome, voteProblemTexts } from "../core/permit/votes.ts";
import { type Project, checkSnapshotId } from "../fleet/compute/compute.ts";
import { UserError } from "../errors.ts";
import { textInput } from "../messages/inputs.ts";
import { md, name, plain } from "../messages/markdown.ts";
import { paragraph } from "../messages/parts.ts";
import { modal } from "../messages/views.ts";
import { scopeOfPerson } from "../core/permit/access.ts";
import { askerOf } from "../core/request/origin.ts";
import { meets, needsOf, voteRefusal, voteRefusalText } from "../core/permit/approval-rule.ts";
import { isListed } from "../core/permit/permit.ts";
import { ownerOf } from "../core/permit/refusal.ts";
import { type ChangeCommand, type Seen, locksTarget, takesSnapshot } from "../registry/define.ts";
import type { Input, Person } from "../registry/invocation.ts";
import { type Moved } from "../core/request/move-request.ts";
import { stateWords, callOf, type StageIn, type State, type Call } from "../core/request/stage.ts";
import type { StoredRequest, RequestIn } from "../core/request/stored-request.ts";
import { readTarget } from "../core/perform/read-target.ts";
import { describeChange, missingWords } from "../core/cards/asking.ts";
import { lacksId } from "../core/cards/render-card.ts";
import { say } from "../slack/error-reply.ts";
import { at, textAt } from "../slack/json.ts";
import { type Press, type ViewSubmission, isDirect } from "../slack/receive/interaction.ts";
import { parseJson } from "../text/parse-json.ts";
import { authorizeRecording, refuseUnderOldPolicy } from "./authorize.ts";
import { checkedInput } from "./form-view.ts";
import {
  type Act,
  type BeforeAck,
  type GatewayContext,
  changeNamed,
  personOf,
} from "./gateway-context.ts";
import { approvalsIn } from "../core/permit/votes.ts";
import { deadlineMs, deadlineSignal } from "../deadline.ts";

/**
 * Handles a press of *Approve* or *Deny*. The button names a request and the fingerprint that the
 * voter saw. The voter is looked up now, and one script in Redis decides the rest. A denial counts
 * at once; its reason is asked for afterwards.
 */
export async function vote(act: Act<Press>, value: Input): Promise<void> {
  const { interaction, reply, gateway } = act;
  const request = await requestWithCard(String(value["request"]), gateway);
  const forged =
    "This button doesn't belong to a request that can be voted on. No vote was counted.";
  if (!request?.record.approval) return refuse("unknown-request", forged);
  const { card, formerCard } = request.delivered;
  // A button copied into another message isn't valid, because only the card shows the facts. The
  // Home tab, and messages that only the voter sees, show the facts too.
  const isItsCard =
    interaction.viewId !== undefined ||
    interaction.ephemeral ||
    isDirect(interaction) ||
    [card, formerCard].some(
      (message) =>
        message?.channelId === interaction.channelId && message.ts === interaction.messageTs,
    );
  if (!isItsCard) return refuse("another-message", forged, request);
  if (interaction.action !== "vote:deny") refuseUnderOldPolicy(gateway);
  const voter = await personOf(act, { fresh: true });
  const choice = interaction.action === "vote:deny" ? "deny" : "approve";
  const outcome = await castVote(request, voter, choice, textAt(value, "digest"), gateway);
  if (outcome.result === "refused") return refuse(outcome.why, outcome.text, request);
  const command = changeNamed(request.record.command, gateway);
  if (outcome.result === "denied" && command) await reply.open(denialModal(request, command));

  async function refuse(why: string, text: string, about?: StoredRequest): Promise<void> {
    const { userId: who, teamId: team } = interaction;
    const of = about ? { request: about.record.id } : {};
    await gateway.store.note({ what: "vote-refused", who, team, why, ...of });
    await reply.privately(say(md`${text}`));
  }
}

type Cast =
  | Exclude<VoteOutcome, { result: "refused" | "again" }>
  | { result: "refused"; why: string; text: string };

/**
 * Judges a vote against the votes that are there, and casts it. If others approved meanwhile it is
 * judged again, because of two people for one seat only the first counts. Each round means one
 * approval more, so the loop ends.
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
    if (no) return { result: "refused", why: no, text: voteRefusalText(no, missingWords(request)) };
    const outcome = await gateway.store.vote(request, voter, choice, seen, meets(votes, voter));
    if (outcome.result === "refused") return { ...outcome, text: voteProblemTexts[outcome.why] };
    if (outcome.result !== "again") return outcome;
    request = await gateway.store.get(request.record.id);
  }
  return { result: "refused", why: "crowd", text: voteProblemTexts.crowd };
}

export const denialCallback = "denial";

export function denialModal({ record }: StoredRequest, command: ChangeCommand): ModalView {
  const { requester, id } = record;
  const sentence = md`Denied: *${describeChange(record, command)}*. Nothing was sent.`;
  const label = `Why? ${requester.name} reads it in the thread.`;
  const reason = textInput("reason", label, { isLong: true, most: 500, isOptional: true });
  const labels = { submit: "Give the reason", close: "No reason" };
  const form = { callback: denialCallback, metadata: { request: id }, ...labels };
  return modal("Denied", [paragraph(sentence), reason], form);
}

/**
 * Stores the reason of the person who denied a request. Throws UserError when a reason was given
 * already, or someone else denied it.
 */
export async function giveReason(act: BeforeAck<ViewSubmission>): Promise<undefined> {
  const { interaction, gateway } = act;
  const reason = plain(interaction.values["reason"] ?? "", 500);
  if (reason === "") return;
  const id = textAt(parseJson(interaction.privateMetadata), "request");
  const request = await gateway.store.get(id);
  const given = request && (await gateway.store.giveReason(request, interaction.userId, reason));
  if (!given) throw new UserError("A reason was already given, or someone else denied this.");
}

/**
 * The accounts that a vote is judged against: the requester, who asked them, and earlier approvers.
 * They are looked up only if the voter's e-mail address is known, or more than one need is open.
 */
async function accountsOf(
  { record, votes }: StoredRequest,
  voter: Person,
  gateway: { person: GatewayContext["person"] },
): Promise<Pick<Parameters<typeof voteRefusal>[0], "requester" | "asker" | "approvers">> {
  const { requester, approval } = record;
  const askerId = askerOf(record);
  const asker = askerId === undefined ? undefined : { id: askerId };
  const approved = approvalsIn(votes).map(({ voterId: id }) => ({ id }));
  // The earlier approvers' groups matter only if one person could meet more than one need.
  const isPlain = (approval?.votes?.length ?? 1) < 2;
  if (voter.email === undefined && isPlain) return { requester, asker, approvers: [] };
  const account = ({ id }: { id: string }) => gateway.person(id, requester.teamId);
  return {
    requester: await account(requester),
    asker: asker && (await account(asker)),
    approvers: await Promise.all(approved.map(account)),
  };
}

const cardWithinMs = 2000;

/**
 * Reads a request and waits up to 2 s for the place of its card, because a press may arrive before
 * Slack has answered the post.
 */
async function requestWithCard(id: string, gateway: { store: Journal }) {
  const until = performance.now() + deadlineMs(cardWithinMs);
  for (;;) {
    const request = await gateway.store.get(id);
    const isBeingPosted = request?.delivered.marks["card"]?.startsWith("posting") === true;
    if (!isBeingPosted || performance.now() > until) return request;
    await sleep(50);
  }
}

export const outcomeCallback = "verdict";

/** What a command makes whose ID a person can add; undefined when it makes nothing. */
function madeBy(command: ChangeCommand): string | undefined {
  if (command.on === "new-project") return "project";
  return takesSnapshot(command) ? "snapshot" : undefined;
}

/**
 * A snapshot's ID is all that a restore needs, and the compute service doesn't say which VM a
 * snapshot is of. So an ID named by a person who sees only some VMs counts once a person who sees
 * all has confirmed it: it may hold the data of another team.
 */
const confirmedLater =
  "Someone who sees every VM confirms it before it can be restored by its name.";

/**
 * A form that asks for the ID of a snapshot recorded without one, or to confirm the ID that a team
 * named.
 */
export function idModal(
  { record: { id, target, input }, stage }: StoredRequest,
  { seesAll }: { seesAll: boolean },
): ModalView {
  const claimed = callOf(stage)?.answer?.claimed;
  const of = md`the snapshot ${name(input["name"])} of ${name(target.name)} (${name(id)})`;
  const question = claimed
    ? md`${claimed.by} says that ${of} has this ID. Check in the compute service's own console that it is of this VM: whoever restores it gets what stands under it.`
    : md`Which ID has ${of}? The compute service's own console shows it.`;
  const hint = seesAll ? undefined : confirmedLater;
  const answer = { hint, most: 200, initial: claimed?.id };
  const made = textInput("made", "ID of the snapshot", answer);
  const parts = [paragraph(question), made, checkedInput()];
  const form = { callback: outcomeCallback, metadata: { request: id, happened: true } };
  const title = claimed ? "Confirm its ID" : "Add its ID";
  return modal(title, parts, { ...form, submit: "Record it", close: "Back" });
}

/**
 * Checks that a person may add an ID: those who may run the command, and administrators. Throws
 * UserError.
 */
export async function authorizeAddingId(
  request: StoredRequest,
  command: ChangeCommand,
  person: Person,
  gateway: GatewayContext,
): Promise<void> {
  const over = [ownerOf(request.record.target)];
  if (isListed(person, "administer", gateway, over)) return;
  await authorizeRecording(request, command, person, gateway);
}

/**
 * A form that asks for a reason, and for the ID of what was made, before a person resolves an
 * unknown outcome.
 */
export function reasonModal(
  { record: { id, target } }: StoredRequest,
  command: ChangeCommand,
  { happened, seesAll }: { happened: boolean; seesAll: boolean },
): ModalView {
  const made = happened ? madeBy(command) : undefined;
  const result = happened ? "done" : "not done";
  const unlocked = locksTarget(command)
    ? md`, and ${name(target.name)} can be changed again`
    : md``;
  const consequence = md`${command.name} of ${name(target.name)} (${name(id)}) will be recorded as ${result} in your name${unlocked}.`;
  const reason = checkedInput();
  const needed = "Without it, it can't be restored by its name.";
  const hint = made !== "snapshot" ? "If you see it." : seesAll ? needed : confirmedLater;
  const asked = { hint, most: 200, isOptional: true };
  const madeId = made === undefined ? undefined : textInput("made", `ID of the ${made}`, asked);
  const parts = [paragraph(consequence), madeId, reason];
  const labels = { submit: "Record it", close: "Back" };
  const form = { callback: outcomeCallback, metadata: { request: id, happened }, ...labels };
  return modal(happened ? "It happened" : "It did not happen", parts, form);
}

/**
 * Resolves an unknown outcome as a person says, or adds a missing ID. Returns errors of the form.
 * Throws UserError.
 */
export async function recordOutcome(act: BeforeAck<ViewSubmission>) {
  const { interaction, gateway } = act;
  const asked = parseJson(interaction.privateMetadata);
  const happened = at(asked, "happened") === true;
  const reason = String(interaction.values["reason"] ?? "").trim();
  if (reason.length < 3) return { errors: { reason: "Enter what you checked." } };
  const request = await gateway.store.get(textAt(asked, "request"));
  const command = changeNamed(request?.record.command, gateway);
  if (!request || !command) throw new UserError("This request no longer exists.");
  if (happened && lacksId(request, command)) return recordId(request, command, reason, act);
  if (request.state !== "unknown") throw alreadyResolved(request);
  const person = await personOf(act, { fresh: true });
  await authorizeRecording(request, command, person, gateway);
  const made = happened ? String(interaction.values["made"] ?? "").trim() : "";
  const madeFacts = made === "" ? {} : await foundAs(made, request, command, person, gateway);
  const decidedBy = { id: person.id, name: person.name, reason };
  const id = made === "" ? "" : ` (${made})`;
  const why = `${happened ? "it happened" : "it did not happen"}${id}, says ${person.id}: ${reason}`;
  const { reads, setbacks } = request.stage;
  const { call = request.stage.call, after } = madeFacts;
  const recordedFacts = { call, reads, decidedBy };
  const to: StageIn<"done" | "not-applied"> = happened
    ? { state: "done", ...recordedFacts, setbacks, ...(after ? { after } : {}) }
    : { state: "not-applied", ...recordedFacts };
  await orJustChanged(gateway.store.move(request, { to, why, actor: person.id }));
  return undefined;
}

/**
 * Stores the ID of a snapshot that was recorded without one. Returns errors of the form. Throws
 * UserError.
 */
async function recordId(
  request: RequestIn<"done">,
  command: ChangeCommand,
  reason: string,
  act: BeforeAck<ViewSubmission>,
) {
  const { interaction, gateway } = act;
  const person = await personOf(act, { fresh: true });
  await authorizeAddingId(request, command, person, gateway);
  const made = String(interaction.values["made"] ?? "").trim();
  if (made === "") return { errors: { made: "Enter the ID." } };
  const madeFacts = await foundAs(made, request, command, person, gateway);
  const why = `its ID is ${made}, says ${person.id}: ${reason}`;
  const to = { ...request.stage, ...madeFacts };
  await orJustChanged(gateway.store.move(request, { to, why, actor: person.id }));
  return undefined;
}

/** Slack waits three seconds for the ack, so a read must end before. */
const foundWithinMs = 2000;

/**
 * Checks the ID that a person found, and returns what to store. A project is read by its ID; a
 * snapshot can't be read. Throws UserError.
 */
async function foundAs(
  id: string,
  { record: { target }, stage }: RequestIn<"unknown" | "done">,
  command: ChangeCommand,
  person: Person,
  gateway: GatewayContext,
): Promise<{ call?: Call; after?: Seen }> {
  if (command.on === "new-project") {
    const within = { signal: deadlineSignal(foundWithinMs) };
    const { seen } = await readTarget({ ...target, id }, gateway, within).catch(() => {
      throw new UserError(
        "The compute service can't be asked now. Try again, or leave this empty.",
      );
    });
    if (seen && "name" in seen && seen.name === target.name) return { after: [seen as Project] };
    throw new UserError(`The compute service has no project ${id} called ${target.name}.`);
  }
  checkSnapshotId(id);
  const { call } = stage;
  if (!call) throw new UserError("Nothing was sent for this request, so it made nothing.");
  const { claimed: _before, ...answer } = { class: "unclear", ...call.answer };
  // A person who doesn't see every VM isn't told whether Gatehouse knows this snapshot.
  if (scopeOfPerson(gateway.policy, person, gateway.ourTeamId) !== undefined)
    return { call: { ...call, answer: { ...answer, claimed: { id, by: person.name } } } };
  if (command.on !== "vm" || (await gateway.snapshots.ownerOf(id)) !== undefined)
    throw new UserError(`Gatehouse knows ${id} as another snapshot. Check the ID.`);
  return { call: { ...call, answer: { ...answer, snapshotId: id } } };
}

/** Returns the moved request. Throws UserError when someone else moved it first. */
export async function orJustChanged<To extends State>(
  moving: Promise<Moved<To>>,
): Promise<RequestIn<To>> {
  const moved = await moving;
  if (moved.kind === "moved") return moved.request;
  throw new UserError("Its state just changed. Check the message again.");
}

export function alreadyResolved({ state }: StoredRequest): UserError {
  return new UserError(`Someone already resolved this: ${stateWords(state)}.`);
}
