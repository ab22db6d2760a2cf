import type { AfterNote } from "../../attestation/render-attestation.ts";
import type { Policy } from "../../config/policy-file.ts";
import { type Message } from "../../messages/blocks.ts";
import { paragraph, small, menuRow } from "../../messages/parts.ts";
import type { ButtonSpec } from "../../messages/buttons.ts";
import { blockWeight, cut, limits } from "../../messages/limits.ts";
import { lineList, roomBeside, sentence, card, withParts } from "../../messages/card.ts";
import { howToOpen } from "../../messages/channel-errors.ts";
import {
  Markdown,
  channelLink,
  dotted,
  firstFew,
  lines,
  md,
  mention,
  name,
  when,
  withFullStop,
  dayAndTime,
} from "../../messages/markdown.ts";
import { type Confirming, askOnce, interruption, whoSkipsApprovals } from "../permit/refusal.ts";
import { type NameOf, peopleInWords } from "../permit/access.ts";
import { boardOf } from "../../redis/board.ts";
import { commandWithRole } from "../../registry/command-roles.ts";
import {
  type ChangeCommand,
  calledName,
  nounOf,
  projectOf,
  type Command,
  type Target,
  runButton,
  helpersInError,
  labelOnCard,
  dottedName,
  locksTarget,
  takesSnapshot,
} from "../../registry/define.ts";
import { type StoredRequest, sentAtOf, type RequestIn } from "../request/stored-request.ts";
import { isReviewed } from "../request/record.ts";
import { type Stage, stateWords, holderOf, callOf, whyOf } from "../request/stage.ts";
import {
  type SinceRequest,
  askedWords,
  askingBlocks,
  askingLine,
  askingNews,
  deedLine,
  describeChange,
  detailOf,
  fingerprintLine,
  linked,
  missingWords,
  requestButton,
  sinceLine,
  targetName,
  verbOf,
  voteButtons,
  whyButton,
} from "./asking.ts";
import {
  askWhetherDone,
  cardViewOf,
  approversIn,
  isChannel,
  isDecidedElsewhere,
  isRefusedInError,
  mentions,
  outcomeOf,
  renderResult,
  symbolOf,
} from "./render-result.ts";
import { undoneBy } from "../request/origin.ts";
import { wayBack } from "./way-back.ts";
import type { EmergencyWords } from "../../registry/emergency.ts";

/** Facts for a card beside its request. */
interface CardFacts {
  /** The place where it was requested, if the card is elsewhere: ` in #ops`. */
  from?: Markdown | undefined;
  /** Says why the card isn't in the channel of its team, or not in the channel of the request. */
  note?: Markdown | undefined;
  /** Changes of the target while the request waits for approval. */
  since?: SinceRequest;
  /** No worker runs that could begin with it. */
  isStranded?: boolean;
  /** The note about the VM after the change. */
  after?: AfterNote | undefined;
  /**
   * Says whether a button asks for confirmation by itself, and whether somebody may skip approvals.
   */
  policy?: (Confirming & Partial<Pick<Policy, "access" | "teams">>) | undefined;
  /** Texts about changes that skip approvals, if some can, and the names of people. */
  emergency?: EmergencyWords | undefined;
  nameOf?: NameOf;
  /** Commands from which the card may offer another one. */
  commands?: readonly Command[] | undefined;
}

/**
 * Renders the one message of a request in the channel, which is edited in place. It mentions nobody
 * but the people who may approve, while it waits for them.
 */
export function renderCard(
  request: StoredRequest,
  command: ChangeCommand,
  approvers: readonly string[] = [],
  facts: CardFacts = {},
): Message {
  const { from = md``, note, since = [], after, policy, emergency, nameOf, commands } = facts;
  const { record, state, final } = request;
  const view = cardViewOf(request);
  if (view === "asking")
    return askingCard(request, command, approvers, {
      from,
      note,
      policy,
      emergency,
      nameOf,
      since,
    });
  const { sign, text } = outcomeOf(request, command, after);
  const below = {
    meta: [
      isReviewed(record) && emergencyLine(request),
      foundLine(request, command),
      requestedLine(request, from),
      note,
    ],
    ways: cardButtons(request, command, { policy, commands, after }),
  };
  if (final) return card({ sign, title: text, ...below });
  const now = facts.isStranded
    ? md`Requested. No worker is running; it starts as soon as one does.`
    : stateLine(request, command);
  const target = targetName(record.target);
  return card({
    title: titleOf(request, command),
    push:
      view === "running" && state !== "authorized"
        ? md`${command.say.doing} ${target}…`
        : md`${verbOf(record, command)} ${target}: ${now}`,
    lines: [now],
    ...below,
  });
}

/**
 * Returns the ID that a person found for a snapshot whose outcome was unknown. The ID may be added
 * after the result was told.
 */
function foundLine({ stage }: StoredRequest, command: ChangeCommand) {
  if (!takesSnapshot(command) || stage.state !== "done" || !stage.decidedBy) return undefined;
  const { snapshotId, claimed } = stage.call?.answer ?? {};
  if (snapshotId !== undefined) return md`Its ID is ${name(snapshotId)}.`;
  return (
    claimed &&
    md`Its ID is ${name(claimed.id)}, says ${claimed.by}; someone who sees every VM must confirm that.`
  );
}

/** Says whether the review of a break-glass was signed: by whom, when, and with which words. */
export function emergencyLine({ delivered: { review } }: StoredRequest): Markdown {
  const signed = review
    ? md`review signed by ${review.by} ${dayAndTime(review.at)}: “${review.why}”`
    : md`review pending`;
  return md`🚨 Break-glass: approval skipped; ${signed}.`;
}

/** Says who approved it: `, approved by amir`. Empty while it waits, and where nobody did. */
function approvedBy(request: StoredRequest): Markdown {
  const names = approversIn(request);
  return names.length === 0 ? md`` : md`, approved by ${names.join(", ")}`;
}

/**
 * Says who requested and approved it, where, and when. For an ended request it adds two facts that the outcome
 * leaves out: the project, and that it is an undo.
 */
function requestedLine(request: StoredRequest, from: Markdown): Markdown {
  const { record, final } = request;
  const { id, target, requester, createdAt, reason } = record;
  const undoes = undoneBy(record);
  const project = projectOf(target);
  const before = dotted(
    project !== undefined && md`in ${project}`,
    undoes !== undefined && md`undo of ${name(undoes)}`,
  );
  const isFirst = !final || before.value === "";
  return dotted(
    final && before,
    md`${isFirst ? "R" : "r"}equested by ${requester.name}${from} at ${when(createdAt)}${askedWords(record)}${approvedBy(request)}`,
    name(id),
    !!reason && md`“${reason}”`,
  );
}

function askingCard(
  request: StoredRequest,
  command: ChangeCommand,
  approvers: readonly string[],
  { from, note, policy, emergency, nameOf, since = [] }: CardFacts,
): Message {
  const called = mentions(approvers);
  const pressed = [...voteButtons(request, command, since), ...cardButtons(request, command)];
  const approverLines = called === "" ? [] : [new Markdown(`Approvers: ${called}`)];
  const skipping = whoMaySkip(request, command, policy);
  if (emergency && skipping.length > 0)
    approverLines.push(emergency.onCard(peopleInWords(skipping, nameOf)));
  const below = [...approverLines, md`${name(request.record.id)} · ${fingerprintLine(request)}`];
  return card({
    push: askingNews(request, command),
    body: [askingBlocks(request, command, { pressed, from, since, below }), note && small(note)],
  });
}

/**
 * The people and groups who could skip the approvals of this request. Nobody can skip those of an
 * undo, because nobody types it as a command.
 */
export function whoMaySkip(
  { record }: StoredRequest,
  command: ChangeCommand,
  { access, teams = {} }: NonNullable<CardFacts["policy"]> = { confirm: [] },
): readonly string[] {
  const { target, input } = record;
  if (!access || undoneBy(record) !== undefined) return [];
  return whoSkipsApprovals({ command, targets: [target], input }, { access, teams });
}

/** Returns the title: `⏳ Restore db-1 in payments from nightly`. */
function titleOf(request: StoredRequest, command: ChangeCommand): Markdown {
  return md`${symbolOf(request, command)} ${deedLine(request.record, command)}`;
}

/**
 * Joins card, result, and mention in one message, for a request that ended before its card was
 * posted.
 */
export function withResult(result: Message, { blocks: [, ...below] }: Message): Message {
  return { ...result, blocks: [...result.blocks, ...below] };
}

function stateLine(request: StoredRequest, command: ChangeCommand): Markdown {
  const { stage } = request;
  const target = name(calledName(request.record.target));
  switch (cardViewOf(request)) {
    case "waiting": {
      const holder = holderOf(stage);
      if (!holder) return withFullStop(md`Waiting: ${whyOf(stage)}`);
      const { requesterName, command: other = "request", request: id, unknown } = holder;
      if (unknown)
        return md`Waiting for a person: did the ${unknown.noun} of ${when(unknown.sentAt, "{time}")} happen?`;
      return md`Waiting for ${requesterName ? md`${requesterName}'s` : "another"} ${other} (${name(id)}) to finish: one change per target.`;
    }
    case "looking":
      return md`${answerWords(stage)}. Checking what happened before anything else is done.`;
    default:
      if (request.state === "unknown") return unknownLines(request, command);
      // Nothing was sent yet. The words must stay true after the send, because the card is edited
      // again only if the change takes longer.
      if (request.state === "authorized") return md`Requested. The result will be in the thread.`;
      return callOf(stage) === undefined
        ? md`${command.say.doing} ${target}…`
        : md`${command.say.doing} ${target}… sent at ${when(sentAtOf(request))}, waiting until ${command.say.until ?? "it has settled"}.`;
  }
}

/** Says how the service answered, in its own words where it gave some. */
function answerWords(stage: Stage): Markdown {
  const { answer } = callOf(stage) ?? {};
  const status = answer?.status ? ` (${answer.status})` : "";
  const words = answer?.message ? `: ${answer.message}` : "";
  if (answer === undefined || (answer.class === "unclear" && words === ""))
    return md`The compute service gave no clear answer`;
  const kind = answer.class === "unclear" ? "" : `: ${answer.class}`;
  return md`The compute service answered${kind}${status}${words}`;
}

function unknownLines(request: RequestIn<"unknown">, command: ChangeCommand): Markdown {
  const { call, reads, asksAgainAt, why } = request.stage;
  const { sentAt } = call;
  const { last } = reads;
  const target = name(calledName(request.record.target));
  const answerLine = answerWords(request.stage);
  const status = last && !why?.includes(last.status) ? ` ${last.status}` : "";
  const lastRead = last ? md` (last read${status} at ${when(last.at)})` : "";
  return lines(
    md`*Outcome unknown.* Look in the compute service's own console for the ${nounOf(command)} of ${target}${detailOf(request.record, command)}, sent at ${when(sentAt)}. Then record what you found.`,
    md`• ${answerLine}${why === undefined ? "" : md`; ${why}`}${lastRead}.`,
    locksTarget(command)
      ? md`• It is not sent again, and ${target} stays locked for changes until someone records it.`
      : md`• It is not sent again. It doesn't lock ${target}.`,
    asksAgainAt !== undefined && md`• Gatehouse asks again at ${when(asksAgainAt, "{time}")}.`,
  );
}

export const cancelButton = (request: StoredRequest) =>
  requestButton("Cancel", "request:cancel", request);

/** What an approved request waits for, as its card says it; undefined when it waits for nothing. */
export const waitingLine = (request: StoredRequest, command: ChangeCommand) =>
  cardViewOf(request) === "waiting" ? stateLine(request, command) : undefined;

export function cardButtons(
  request: StoredRequest,
  command: ChangeCommand,
  known: Pick<CardFacts, "policy" | "commands" | "after"> = {},
): ButtonSpec[] {
  const button = (label: string, action: string) => requestButton(label, action, request);
  const cancel = cancelButton(request);
  switch (cardViewOf(request)) {
    case "asking":
      return [cancel, whyButton(request)];
    case "waiting":
      return [
        ...(command.on === "vm" && command.openedBy !== undefined
          ? [button(command.openedBy, "request:open")]
          : []),
        ...(holderOf(request.stage)?.unknown ? [button("Record it", "request:record")] : []),
        cancel,
      ];
    case "unknown":
      return [
        button("It happened", "request:happened"),
        button("It did not happen", "request:not-happened"),
        button("I can't tell yet", "request:later"),
        button("Check again", "request:look"),
      ];
    case "ended":
      return endedButtons(request, command, known);
    default:
      return [];
  }
}

/**
 * Returns the buttons of an ended request. A request that was sent is tried again; one that people
 * or rules turned away is requested again.
 */
function endedButtons(
  request: StoredRequest,
  command: ChangeCommand,
  {
    policy = { confirm: [] },
    commands = [],
    after,
  }: Pick<CardFacts, "policy" | "commands" | "after">,
): ButtonSpec[] {
  const { record, state, stage, changedAt } = request;
  const { id, target, approval } = record;
  if (lacksId(request, command)) {
    const label = callOf(stage)?.answer?.claimed ? "Confirm its ID" : "Add its ID";
    return [requestButton(label, "request:happened", request)];
  }
  const undo = mayUndo(request, changedAt)
    ? [requestButton("Undo", "request:undo", request)]
    : undefined;
  if (after?.failure) {
    const back = after.failure.isNew ? wayBack(request, command) : undefined;
    const ways = undo ?? (back ? [askOnce(back, command, target, policy)] : []);
    return [...attestAgain(target, commands), ...ways];
  }
  if (undo) return undo;
  // Another try would be refused again, so commands that help are offered.
  if (isRefusedInError(request)) return helpInError(target, commands);
  const instead = stage.state === "cancelled" ? stage.instead : undefined;
  const offered: ChangeCommand["next"] = state === "done" ? command.next : instead && [instead];
  if (offered)
    return offered.map(({ label, command: next, interrupts }) => ({
      label,
      about: calledName(target),
      action: "request:next",
      value: JSON.stringify({ request: id, next }),
      ...(interrupts ? interruption(label, target, policy) : {}),
    }));
  if (!mayRetry(request)) return [];
  const isTurnedAway = ["denied", "expired", "cancelled"].includes(state);
  const label = isTurnedAway ? "Request again" : "Try again";
  const button = requestButton(label, "request:retry", request);
  return [approval ? button : askOnce(button, command, target, policy)];
}

const helpInError = (target: Target, commands: readonly Command[]): ButtonSpec[] =>
  helpersInError(commands).map((command) => buttonOn(target, command));

function attestAgain(target: Target, commands: readonly Command[]): ButtonSpec[] {
  const reader = commandWithRole(commands, "shows-evidence");
  return reader ? [buttonOn(target, reader)] : [];
}

/** The button that runs this command on a VM. */
const buttonOn = (vm: Target, command: Command): ButtonSpec =>
  runButton(labelOnCard(command), dottedName(command), { vm: vm.id }, calledName(vm));

/** Whether the request may be tried again. A retry is a new request with its own checks. */
export function mayRetry({ stage }: StoredRequest): boolean {
  if (stage.state === "cancelled") return stage.wasFrozen === true;
  return ["failed", "rejected", "not-applied", "expired", "denied"].includes(stage.state);
}

/**
 * Whether it is a snapshot that a person recorded as taken, and that can't be restored before its
 * ID is known.
 */
export function lacksId(
  request: StoredRequest,
  command: ChangeCommand,
): request is RequestIn<"done"> {
  const { stage } = request;
  if (!takesSnapshot(command) || stage.state !== "done") return false;
  return !stage.call?.answer?.snapshotId && !!stage.decidedBy;
}

const undoWithinMs = 24 * 3600_000;

/** Whether restoring the safety snapshot is still offered. `now` is Redis time. */
export function mayUndo(request: StoredRequest, now: number): request is RequestIn<"done"> {
  const { stage, changedAt } = request;
  const hasSnapshot = stage.state === "done" && stage.call?.safety !== undefined;
  return hasSnapshot && now - changedAt < undoWithinMs;
}

/** A request of a shared card, with its command. */
export interface Member {
  request: StoredRequest;
  command: ChangeCommand;
  /** The note about the attestation of its VM, once it ended. */
  note?: AfterNote | undefined;
  /** Sentences of the facts that outlast its end. */
  goesOn?: readonly Markdown[];
}

/** The most names of requests that were not done in one result. */
const mostNamed = 20;
/** The most notes in one message. */
const mostNotes = 10;
/** The most names before a note. */
const mostNoted = 5;

/**
 * Renders one card for several requests. It has a line for each, in the order in which they joined,
 * and a menu that opens one with its details and buttons. `results` has the requests of each
 * requester whose result the card tells, too.
 */
export function renderSharedCard(
  members: readonly Member[],
  results: readonly (readonly Member[])[] = [],
): Message {
  const title = (hasLines: boolean) =>
    results.length > 0
      ? lines(...results.map((result) => sumUp(result, hasLines)))
      : md`*${members.length} requests*: ${countsOf(members)}`;
  const notes = [...goesOnLines(results.flat()), ...noteLines(results.flat())];
  const choices = members.map(({ request, command, note }): [string, string] => [
    `${outcomeOf(request, command, note).sign} ${command.say.verb} ${request.record.target.name} (${request.record.requester.name})`,
    JSON.stringify({ request: request.record.id }),
  ]);
  const noted = notes.length > 0 ? paragraph(lines(...notes)) : undefined;
  const choose = menuRow({ label: "Details of one…", action: "request:show", options: choices });
  const room = roomBeside(paragraph(title(true)), noted, choose);
  return card({
    title: title(true),
    push: title(false),
    body: [
      lineList(shortenedLines(members.map(lineOf), room), {
        rest: (left) => md`… ${left} more: choose one below for its details.`,
      }),
      noted,
      choose,
    ],
  });
}

/**
 * Tells requesters how their requests ended, in one message when several wait at the same time. A
 * single result looks like that of a request with a card of its own.
 */
export function renderSharedResult(
  results: readonly (readonly Member[])[],
  { isBelowCard = true, commands }: { isBelowCard?: boolean } & Pick<CardFacts, "commands"> = {},
): Message {
  const all = results.flat();
  const [only] = all;
  if (only && all.length === 1) {
    // The line of the card doesn't say that the VM fails attestation by now, so it can't stand for
    // the result.
    const above = isBelowCard && only.note?.but === undefined ? "several" : undefined;
    const { request, command, note, goesOn } = only;
    return renderResult(request, command, note, { above, goesOn, commands });
  }
  const sums = results.flatMap((result) => {
    const notDone = result.filter(({ request }) => request.state !== "done");
    return [
      sumUp(result),
      ...(notDone.length > 0 ? [md`Not done: ${namesOf(notDone, mostNamed)}.`] : []),
    ];
  });
  return card({
    title: lines(...sums),
    push: lines(
      ...results.map((result) =>
        results.length === 1 ? sumUp(result) : withRequesterName(result),
      ),
    ),
    meta: [...goesOnLines(all), ...noteLines(all)],
  });
}

/**
 * Puts the name of the requester before the sum, because a push notification doesn't show mentions:
 * "olivia: ✅ All 12 are done."
 */
const withRequesterName = (members: readonly Member[]): Markdown =>
  md`${members[0]?.request.record.requester.name ?? ""}: ${sumUp(members)}`;

/**
 * Sums up the requests of one requester: "✅ @olivia All 12 are done." With `hasLines`, a single
 * outcome isn't repeated, because its line on the card says it. A failed attestation isn't in that
 * line, so it is always said.
 */
function sumUp(members: readonly Member[], hasLines = false): Markdown {
  const [first] = members;
  if (!first) return md``;
  const who = mention(first.request.record.requester.id);
  const done = members.filter(({ request }) => request.state === "done").length;
  const isFailing = ({ note }: Member) => note?.but !== undefined;
  const failing = members.filter(isFailing).length;
  const worst =
    members.find(({ request }) => request.state !== "done") ?? members.find(isFailing) ?? first;
  const { sign: symbol, text } = outcomeOf(worst.request, worst.command, worst.note);
  if (members.length === 1)
    return md`${symbol} ${who} ${hasLines && !isFailing(worst) ? namesOf(members, 1) : text}`;
  if (failing > 0 && done === members.length)
    return md`${symbol} ${who} All ${done} are done, but ${failing} of them ${failing === 1 ? "fails" : "fail"} attestation.`;
  if (done === members.length) return md`${symbol} ${who} All ${done} are done.`;
  if (done === 0) return md`${symbol} ${who} None of ${members.length} is done.`;
  return md`${symbol} ${who} ${done} of ${members.length} done, ${members.length - done} not.`;
}

/** A line of a shared card: what is said of the request, and who made it. */
interface MemberLine {
  text: Markdown;
  who: Markdown;
}

/** The characters of the longest lines are cut, so that each request has its line. */
function shortenedLines(all: readonly MemberLine[], room: number): Markdown[] {
  const whole = ({ text, who }: MemberLine) => md`${text} ${who}`;
  // Each section has its own weight, and each line its break.
  const sectionsAt = Math.ceil(room / limits.section) + 1;
  let left = room - sectionsAt * blockWeight;
  let longest = 0;
  for (const [n, length] of all
    .map((line) => whole(line).value.length + 1)
    .toSorted((a, b) => a - b)
    .entries()) {
    longest = Math.floor(left / (all.length - n));
    if (length > longest) break;
    longest = Infinity;
    left -= length;
  }
  return all.map((line) => {
    const most = longest - 2 - line.who.value.length;
    return whole(most === Infinity ? line : { ...line, text: shorter(line.text, most) });
  });
}

const shorter = (text: Markdown, most: number) => new Markdown(cut(text.value, Math.max(1, most)));

function countsOf(members: readonly Member[]): string {
  const byState = Map.groupBy(members, ({ request }) => stateWords(request.state));
  return [...byState].map(([words, same]) => `${same.length} ${words}`).join(", ");
}

function lineOf({ request, command, note }: Member): MemberLine {
  const { record, state, stage } = request;
  const who = md`(${record.requester.name})`;
  const { sign: symbol, text } = outcomeOf(request, command, note);
  if (cardViewOf(request) === "ended") return { text: md`${symbol} ${text}`, who };
  const deed = md`${symbol} *${command.say.verb}* ${targetName(record.target)}`;
  if (boardOf(request.delivered) === undefined && state === "unknown")
    return { text: md`${deed}: outcome unknown, see its own message`, who };
  const since = when(sentAtOf(request), "{time}");
  const why = stage.state === "authorized" && stage.why ? md`: ${stage.why}` : md``;
  return { text: md`${deed}: ${stateWords(state)} since ${since}${why}`, who };
}

/** Returns the facts that outlast the end of these requests. Each says of which VM it is. */
function goesOnLines(members: readonly Member[]): Markdown[] {
  const texts = members.flatMap(({ goesOn = [] }) => goesOn);
  const rest = texts.length - mostNotes;
  return [...texts.slice(0, mostNotes), ...(rest > 0 ? [md`… ${rest} more`] : [])];
}

/** Returns the notes. A note that is the same for several requests is said once. */
function noteLines(members: readonly Member[]): Markdown[] {
  const noted = members.filter(({ note }) => note !== undefined);
  const byNote = Map.groupBy(noted, ({ note }) => note?.line.value);
  return [...byNote.values()]
    .slice(0, mostNotes)
    .map((same) => md`${namesOf(same, mostNoted)}: ${same[0]?.note?.line ?? ""}`);
}

function namesOf(members: readonly Member[], most: number): Markdown {
  const names = members.map(({ request }) => name(calledName(request.record.target)).value);
  return new Markdown(firstFew(names, most));
}

/** A permalink. Undefined when Slack doesn't tell it. */
type Link = string | undefined;

/**
 * Renders the message in the channel of the request, while the card is in the channel of the team.
 * It has the state, and the buttons of the requester.
 */
export function renderAsked(
  request: StoredRequest,
  command: ChangeCommand,
  link: Link,
  known: CardFacts = {},
): Message {
  const { record } = request;
  const where = md`${channelLink(record.teamChannel ?? "")}: ${linked(link, "open its card")}. The result is told here too.`;
  if (cardViewOf(request) !== "asking") {
    return withParts(renderCard(request, command, [], known), small(md`Its card is in ${where}`));
  }
  const deed = describeChange(record, command);
  return card({
    title: titleOf(request, command),
    push: md`${deed} waits for approval in the channel of its team`,
    lines: [
      sinceLine(known.since ?? []),
      askingLine(request),
      md`The approvers see it in ${where}`,
    ],
    ways: cardButtons(request, command),
  });
}

/**
 * Asks the requester, or the team, about an unknown outcome where the card is not. `key` is
 * `unknown`, or a reminder.
 */
export function renderUnknownElsewhere(
  key: string,
  request: StoredRequest,
  command: ChangeCommand,
  link: Link,
): Message {
  const { record, stage } = request;
  const reason = whyOf(stage);
  const why = reason ? md` (${reason})` : "";
  const whom = isDecidedElsewhere(request) ? mention(record.requester.id) : undefined;
  const who = whom
    ? ""
    : md` ${record.requester.name} requested it${cameFrom(request, undefined)}.`;
  const where = md`${why}${who} ${linked(link, "Its message")} has the facts and the buttons. Nothing is sent again automatically.`;
  return askWhetherDone(key, request, command, whom, where);
}

/** Says where it was requested, for the channel of its team. */
export function cameFrom({ record }: StoredRequest, link: Link): Markdown {
  if (!isChannel(record.channelId)) return md` in a direct message`;
  const there = link === undefined ? "" : md` (${linked(link, "open")})`;
  return md` in ${channelLink(record.channelId)}${there}`;
}

/** Says on a card why it isn't where it should be. Undefined when it is. */
export function closedLine({ record, delivered }: StoredRequest): Markdown | undefined {
  const { closedBy, isTeamClosed } = delivered;
  if (closedBy !== undefined)
    return md`Gatehouse can't post in ${channelLink(record.channelId)}, so only you see this. ${howToOpen(closedBy) ?? md`Slack refused it (${name(closedBy)}).`}`;
  if (isTeamClosed !== true) return undefined;
  return md`Gatehouse can't post in ${channelLink(record.teamChannel ?? "")}, the channel of its team, so this card is here. \`/invite @gatehouse\` there changes that, unless another company shares it.`;
}

/**
 * Renders an answer for the person who pressed a button of a card that Slack doesn't let Gatehouse
 * change any more. `isAnew`: a new card follows.
 */
export function renderStaleCard(
  request: StoredRequest,
  command: ChangeCommand,
  { isAnew }: { isAnew: boolean },
): Message {
  const { record, state } = request;
  const now = state === "draft" ? askingLine(request) : md`It is ${stateWords(state)}.`;
  const where = isAnew
    ? md`Slack doesn't let Gatehouse change its card any more, so a new one follows in this channel.`
    : md`Slack doesn't let Gatehouse change its card any more: ${name(`/gatehouse why ${record.id}`)} shows how it stands.`;
  return sentence(
    lines(md`*${describeChange(record, command)}*: what you pressed counts. ${now}`, where),
  );
}

/** Renders a direct message to the requester, who may have stopped looking at the channel. */
export function renderExpired(request: StoredRequest, command: ChangeCommand, link: Link): Message {
  const { record } = request;
  const deed = describeChange(record, command);
  const missing = missingWords(request);
  const still = missing === undefined ? "" : md` It still needed ${missing}.`;
  return card({
    sign: "⌛",
    title: md`*${deed}* expired at ${when(record.approval?.expiresAt ?? 0)} without the approvals it needs; nothing was sent.${still} ${linked(link, "Its card")} has the facts.`,
    push: md`Expired without approval: ${deed}. Nothing was sent.`,
    ways: [requestButton("Request again", "request:retry", request)],
  });
}
