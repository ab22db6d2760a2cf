import { statusFacts } from "../../fleet/compute/compute.ts";
import { type Message } from "../../messages/blocks.ts";
import { sentence, card } from "../../messages/card.ts";
import {
  hintOf,
  duration,
  withFullStop,
  Markdown,
  atTime,
  md,
  mention,
  name,
  when,
} from "../../messages/markdown.ts";
import type { AfterNote } from "../../attestation/render-attestation.ts";
import {
  type ChangeCommand,
  type Command,
  calledName,
  helpersInError,
  nounOf,
} from "../../registry/define.ts";
import type { Args } from "../../registry/invocation.ts";
import { checkInput } from "../../registry/parse.ts";
import { describeChange, detailOf, missingWords } from "./asking.ts";
import { undoneBy } from "../request/origin.ts";
import type { StoredRequest, RequestIn } from "../request/stored-request.ts";
import {
  sentWords,
  stateWords,
  lasts,
  beforeOf,
  holderOf,
  callOf,
  type StageIn,
  type Decider,
  isAlready,
  whyOf,
  readsOf,
  type Stage,
  deciderOf,
} from "../request/stage.ts";
import { statusOf } from "../request/seen.ts";
import type { Vote } from "../permit/votes.ts";
import { approvalsIn } from "../permit/votes.ts";

/**
 * The place of a message in a thread, which doesn't repeat the facts above it. `card`: below the
 * request's own card. `several`: in a thread with messages about other requests. Undefined outside
 * a thread.
 */
export type Above = "card" | "several" | undefined;

/** Facts for a result, beside its request. */
interface ResultFacts {
  /** Whether the requester is mentioned. By default where they made the request. */
  isMentioned?: boolean;
  /** Sentences of the facts that outlast its end. */
  goesOn?: readonly Markdown[] | undefined;
  above?: Above;
  /** Commands from which the message may name another one. */
  commands?: readonly Command[] | undefined;
}

/** Renders a notice of the request's thread: `half-way`, `denial`, `unknown`, or a reminder. */
export function renderNotice(
  key: string,
  request: StoredRequest,
  command: ChangeCommand,
  { above }: { above?: Above } = {},
): Message {
  const { record, stage } = request;
  if (key === "half-way") {
    const until = when(record.approval?.expiresAt ?? 0, "{time}");
    const missing = missingWords(request) ?? "a decision";
    const deed = describeChange(record, command);
    const text = md`Half of the time has passed: *${deed}* still needs ${missing} until ${until}. The message above has the facts and the buttons.`;
    return card({ sign: "⏰", title: text, push: md`⏰ ${deed} still needs ${missing}.` });
  }
  if (key === "denial") {
    const { name: who = "", reason = "" } = denialOf(request) ?? {};
    return sentence(md`${who} denied it: “${reason}”`);
  }
  const reason = whyOf(stage);
  const why = reason && !above ? md` (${reason})` : "";
  const rest = above ? "" : " Nothing is sent again automatically.";
  const where = md`${why} The message above has the facts and the buttons.${rest}`;
  return askWhetherDone(key, request, command, addressRequester(request), where);
}

/** Asks whether a request with an unknown outcome happened. `key` is `unknown`, or a reminder. */
export function askWhetherDone(
  key: string,
  { record }: StoredRequest,
  command: ChangeCommand,
  whom: Markdown | undefined,
  where: Markdown,
): Message {
  const again = key === "unknown" ? "Outcome unknown" : "Still unknown";
  const asked = md`${again}: did “${describeChange(record, command)}” happen?`;
  return card({
    sign: signs.unknown,
    title: md`${whom === undefined ? "" : md`${whom} `}${asked}${where}`,
    push: md`${signs.unknown} ${asked} Check it, then record what happened.`,
  });
}

/**
 * Addresses the requester. They are mentioned once, where they made the request, and named
 * elsewhere.
 */
function addressRequester(
  request: StoredRequest,
  isMentioned = !isDecidedElsewhere(request),
): Markdown {
  const { id, name: who } = request.record.requester;
  return isMentioned ? mention(id) : md`${who}:`;
}

/**
 * Tells how a request ended, with the facts that were read. The card has the sentence already, so
 * below it only the notification and screen readers get the sentence.
 */
export function renderResult(
  request: StoredRequest,
  command: ChangeCommand,
  note?: AfterNote,
  { isMentioned, above, goesOn = [], commands = [] }: ResultFacts = {},
): Message {
  const { record, stage, state } = request;
  const { sign, text } = outcomeOf(request, command, note);
  const begin = md`${sign} ${addressRequester(request, isMentioned)}`;
  const called = name(calledName(record.target));
  const proof = proofOf(request);
  const isProven = proof.value !== "" && !isAlready(stage);
  const isSeen = state === "done" && isProven && !deciderOf(stage);
  const result = isSeen ? stateNow(request, command) : withFullStop(endWords(request));
  const lacksTarget = above === "several" && !result.value.includes(called.value);
  const short = md`${lacksTarget ? md`${called}: ` : ""}${result}${isProven ? md` ${proof}` : ""}`;
  const rest = new Markdown(goesOn.map(({ value }) => value).join(" "));
  const own = request.state === "done" ? wordsOfCommand(request, command).added : undefined;
  const safety = request.state === "done" ? request.stage.call?.safety : undefined;
  const wayBack =
    safety !== undefined &&
    md`Undo restores the safety snapshot ${name(safety.snapshotId)}, taken ${safety.at === undefined ? md`before` : atTime(safety.at, request.changedAt)}.`;
  return card({
    title: md`${begin} ${above ? short : text}`,
    push: md`${begin} ${text}${rest.value === "" ? "" : md` ${rest}`}`,
    lines: [
      rest.value !== "" && rest,
      own,
      wayBack,
      above === "several" && decidedLine(request),
      note?.line,
      hintOf(hintIn(stage) ?? (isRefusedInError(request) ? insteadInError(commands) : undefined)),
    ],
    meta: [isProven && !above && proof],
  });
}

/**
 * Returns what was sent and read, and when: `Sent 11:44, REBOOTING seen 11:44, RUNNING read 11:45.`
 * Empty when nothing was.
 */
export function proofOf({ stage, attempt }: StoredRequest): Markdown {
  const call = callOf(stage);
  const { last } = readsOf(stage);
  const proof = [
    call && md`Sent ${when(call.sentAt)}`,
    call?.mark && md`${call.mark.status} seen ${when(call.mark.at)}`,
    last && md`${last.status} read ${when(last.at)}`,
    attempt > 1 && md`attempt ${attempt}`,
  ].filter((fact) => typeof fact === "object");
  return proof.length === 0
    ? md``
    : md`${new Markdown(proof.map(({ value }) => value).join(", "))}.`;
}

/** Returns the hint for a request that was not sent. */
const hintIn = (stage: Stage): string | undefined => ("hint" in stage ? stage.hint : undefined);

/** Says how the target is after the change, as it was read: `web-2 runs again.` */
function stateNow(request: StoredRequest, command: ChangeCommand): Markdown {
  const { until } = command.say;
  if (until === undefined) return headline(request, command);
  return md`${name(calledName(request.record.target))} ${until.replace(/^it /, "")}.`;
}

/**
 * Says in a sentence without full stop how a request ended. It has a subject, because it follows the
 * mention of the requester, who may have had no part in it: "denied" alone would say that the
 * requester denied it.
 */
export function endWords(request: StoredRequest): Markdown {
  const { record, stage, votes } = request;
  const why = whyOf(stage);
  const because = why ? md`: ${why}` : "";
  switch (stage.state) {
    case "denied": {
      const { name: who, reason } = denialOf(request) ?? {};
      return md`${who ?? "Someone"} denied it${reason ? md`: “${reason}”` : ""}`;
    }
    case "expired": {
      const { required = 0 } = record.approval ?? {};
      const approved = approvalsIn(votes).length;
      if (approved >= required) return md`It expired before it started${because}`;
      return md`${approved === 0 ? "Nobody" : "Too few people"} approved it in time`;
    }
    case "done": {
      const { decidedBy } = stage;
      if (decidedBy) return md`${decidedBy.name} recorded that it happened${reasonOf(decidedBy)}`;
      return isIdle(request) ? md`Nothing had to be done` : md`It is ${stateWords(stage.state)}`;
    }
    case "not-applied": {
      const { decidedBy } = stage;
      if (!decidedBy) return md`It did not happen${because}`;
      return md`${decidedBy.name} recorded that it did not happen${reasonOf(decidedBy)}`;
    }
    case "failed":
      return md`It failed: the compute service reports ${statusOf(stage.after)}`;
    case "rejected":
      return md`It was not done${because}`;
    default: {
      const decidedBy = deciderOf(stage);
      if (isIdle(request) && !decidedBy) return md`Nothing had to be done`;
      return decidedBy ? md`${decidedBy.name} canceled it` : md`It was canceled${because}`;
    }
  }
}

/**
 * Returns the words that the command itself has for its result. Empty when this version can't read
 * its arguments.
 */
function wordsOfCommand({ record, stage }: RequestIn<"done">, command: ChangeCommand) {
  const read = checkInput(command, record.input);
  if (!("args" in read)) return {};
  const before = beforeOf(stage);
  const { after } = stage;
  const answer = stage.call?.answer ?? {};
  // The target is of the kind that the command expects.
  const own: {
    addToResult?(before: unknown, after: unknown, args: Args, answer: object): Markdown | undefined;
    describeResult?(
      target: Markdown,
      before: unknown,
      after: unknown,
      args: Args,
    ): Markdown | undefined;
  } = command;
  const target = name(calledName(record.target));
  return {
    added: own.addToResult?.(before, after, read.args, answer),
    changed: own.describeResult?.(target, before, after, read.args),
  };
}

/**
 * Returns the sign and the headline. A VM that fails attestation gets no green sign, although the
 * change was made.
 */
export function outcomeOf(
  request: StoredRequest,
  command: ChangeCommand,
  note: AfterNote | undefined = request.delivered.evidence,
) {
  const [sign, text] = [symbolOf(request, command), headline(request, command)];
  if (note?.but === undefined) return { sign, text };
  return { sign: "🔴", text: md`${new Markdown(text.value.replace(/\.$/, ""))}, but ${note.but}.` };
}

/** Returns the outcome in one sentence. */
export function headline(request: StoredRequest, command: ChangeCommand): Markdown {
  const { record, stage } = request;
  const target = name(calledName(record.target));
  const { done } = command.say;
  const verb = undoneBy(record) === undefined ? command.say.verb : `Undo of the ${nounOf(command)}`;
  const whole = md`${target}${detailOf(record, command)}`;
  const reason = whyOf(stage);
  const why = reason ? md`: ${reason.replace(/\.$/, "")}` : md``;
  switch (request.state) {
    case "done":
      return doneLine(request, command, whole);
    case "failed":
      return md`${verb} of ${whole} failed: the compute service reports ${statusOf(request.stage.after)}.`;
    case "rejected":
      return md`${verb} of ${whole} was not done${why}.`;
    case "not-applied": {
      const { decidedBy, reads } = request.stage;
      if (decidedBy)
        return withFullStop(
          md`${verb} of ${whole} did not happen, says ${decidedBy.name}${reasonOf(decidedBy)}`,
        );
      if (!reads.last) return md`${verb} of ${whole} did not happen${why}.`;
      return md`${target} ${command.on === "vm" ? `didn't ${verb.toLowerCase()}` : `wasn't ${done.toLowerCase()}`}; two readings say ${reads.last.status}. Safe to try again.`;
    }
    case "denied":
      return withFullStop(md`${verb} of ${whole} was denied${deniedBy(request)}`);
    case "expired":
      return md`${verb} of ${whole} expired before it started${why}.`;
    default: {
      if (request.state === "cancelled" && request.stage.instead)
        return md`Not ${done.toLowerCase()}${why}.`;
      const decidedBy = deciderOf(stage);
      return md`${verb} of ${whole} was canceled${decidedBy ? md` by ${decidedBy.name}` : ""}${why}.`;
    }
  }
}

function doneLine(request: RequestIn<"done">, command: ChangeCommand, whole: Markdown): Markdown {
  const { record, stage, changedAt } = request;
  const { verb } = command.say;
  const isUndo = undoneBy(record) !== undefined;
  const done = isUndo ? `Undid the ${nounOf(command)} of` : command.say.done;
  const { decidedBy, already, call, after } = stage;
  if (decidedBy)
    return withFullStop(md`${done} ${whole}, says ${decidedBy.name}${reasonOf(decidedBy)}`);
  if (command.on === "vm" && command.keeps) return md`${done} ${whole}.`;
  if (already)
    return md`${name(calledName(record.target))} is already ${statusOf(after)}; ${alreadyWords(stage)}.`;
  if (isUnconfirmed(request, command))
    return md`${verb} of ${whole} was accepted by the compute service; nothing more can be confirmed.`;
  const { changed } = wordsOfCommand(request, command);
  if (changed) return md`${changed}.`;
  const took = duration(changedAt - (call?.sentAt ?? record.createdAt));
  return md`${done} ${whole} in ${took}${newStatusWords(stage, command)}.`;
}

/** Whether the compute service refused it because the VM is in ERROR. It will refuse it again. */
export function isRefusedInError({ record, stage }: StoredRequest): boolean {
  if (stage.state !== "rejected" || record.target.kind !== "vm") return false;
  const { answer, before } = stage.call;
  return answer?.status === 409 && statusOf(before) === "ERROR";
}

/**
 * Returns the names of the commands that the compute service refused because the VM is in ERROR,
 * and would refuse again while that lasts. Every card that offers commands on a VM leaves these
 * out. `last` has the VM's newest requests, newest first.
 */
export function refusedInError({
  vm,
  last = [],
}: {
  vm: { status: string };
  last?: readonly StoredRequest[] | undefined;
}): ReadonlySet<string> {
  if (!statusFacts(vm.status).isAlarming) return new Set();
  const newest = new Map(last.toReversed().map((request) => [request.record.command, request]));
  return new Set(
    [...newest].flatMap(([command, request]) => (isRefusedInError(request) ? [command] : [])),
  );
}

export function insteadInError(commands: readonly Command[]): string {
  return `The compute service refuses this while the VM is in ERROR. ${nextInError(commands)}`;
}

/** Says what may help with a VM in ERROR. */
export function nextInError(commands: readonly Command[]): string {
  const ways = helpersInError(commands).flatMap(({ helpsInError = [] }) => helpsInError);
  return `Next: ${anyOf.format([...ways, "read the compute service's own logs"])}.`;
}

const anyOf = new Intl.ListFormat("en-US", { type: "disjunction" });

function deniedBy(request: StoredRequest): Markdown {
  const { name: who, reason } = denialOf(request) ?? {};
  return md`${who ? md` by ${who}` : ""}${reason ? md`: “${reason}”` : ""}`;
}

/**
 * Says that nothing had to be sent, or, after a 409, that the call was refused. `already` alone
 * says only that the target was in the wanted state.
 */
function alreadyWords({ call, setbacks }: StageIn<"done">): string {
  return call?.answer?.class === "conflict"
    ? "the compute service refused the call (409)"
    : sentWords(setbacks);
}

/**
 * Whether a request was accepted without the ID that would prove its effect. Only the answer could
 * have proven it.
 */
export function isUnconfirmed({ stage }: Pick<RequestIn<"done">, "stage">, command: ChangeCommand) {
  const { call, decidedBy } = stage;
  return command.effect.provenBy && !decidedBy && call?.answer?.snapshotId === undefined;
}

function reasonOf({ reason }: Decider): Markdown {
  return reason ? md`: “${reason}”` : md``;
}

/**
 * Says the present status, if the command normally leaves the status as it was and it is another
 * one now.
 */
function newStatusWords(stage: StageIn<"done">, { effect }: ChangeCommand): string {
  const status = statusOf(stage.after);
  return effect.needsMark && status !== statusOf(beforeOf(stage)) ? `; it is ${status} now` : "";
}

/** There is one sign for each outcome, wherever it is told. */
export const signs = {
  done: "✅",
  partly: "⚠️",
  idle: "⚪",
  failed: "❌",
  unknown: "❓",
  looking: "🔎",
  open: "⏳",
} as const;

export function symbolOf(request: StoredRequest, command: ChangeCommand): string {
  const view = cardViewOf(request);
  if (view !== "ended") return view === "unknown" || view === "looking" ? signs[view] : signs.open;
  if (isIdle(request)) return signs.idle;
  if (request.state !== "done") return signs.failed;
  return isUnconfirmed(request, command) ? signs.partly : signs.done;
}

/**
 * Whether nothing had to be done: the target was so already, a stopped target can't be changed so,
 * or a person canceled the request.
 */
function isIdle({ stage }: StoredRequest): boolean {
  if (stage.state === "cancelled") return stage.instead !== undefined || !!stage.decidedBy;
  return isAlready(stage);
}

/** The view that a card shows. Most moves within a view don't edit the message (`cardVersion`). */
type CardView = "asking" | "running" | "waiting" | "looking" | "unknown" | "ended";

export function cardViewOf({ stage, final }: StoredRequest): CardView {
  if (final) return "ended";
  switch (stage.state) {
    case "draft":
      return "asking";
    case "unknown":
      return "unknown";
    case "unclear":
      return "looking";
    case "authorized":
      return stage.waitsFor || stage.why ? "waiting" : "running";
    default:
      return "running";
  }
}

/** Returns the part of `cardVersion` for the ID of a snapshot that a person found. */
function foundMark({ stage }: StoredRequest): string {
  const answer = callOf(stage)?.answer;
  if (!deciderOf(stage) || !answer) return "";
  const id =
    answer.snapshotId ?? (answer.claimed && `${answer.claimed.id} by ${answer.claimed.by}`);
  return id === undefined ? "" : ` ${id}`;
}

/** Returns the version of the card, which is edited only when this changes. */
export function cardVersion(request: StoredRequest): string {
  const { stage, state } = request;
  const cardView = cardViewOf(request);
  switch (cardView) {
    case "asking":
      return `asking ${request.votes.length}`;
    case "waiting":
      return `waiting ${holderOf(stage)?.request ?? ""} ${holderOf(stage)?.unknown?.sentAt ?? ""} ${whyOf(stage) ?? ""}`;
    case "ended":
      return `ended ${state} ${deciderOf(stage)?.id ?? ""}${denialOf(request)?.reason ? " why" : ""}${foundMark(request)}`;
    case "unknown":
      return `unknown ${readsOf(stage).last?.status ?? ""} ${stage.state === "unknown" ? (stage.asksAgainAt ?? "") : ""}`;
    case "running":
      return lasts(stage) ? "running long" : cardView;
    default:
      return cardView;
  }
}

/**
 * Whether the card, with its thread, is in the channel of its team, which decides there. Where it
 * was requested, a message links to the card, and the result is told there, too.
 */
export function isDecidedElsewhere({ record, delivered }: StoredRequest): boolean {
  return (
    record.approval !== undefined &&
    record.teamChannel !== undefined &&
    delivered.isTeamClosed !== true
  );
}

/** Whether it is a channel, and not a direct message or the Home tab. */
export function isChannel(channelId: string): boolean {
  return /^[CG]/.test(channelId);
}

/**
 * Whether the request has no card. A safety snapshot and a request of a rollout have none, because
 * their parent reports them. With an unknown outcome they get a card, for its buttons, and keep it.
 */
export function hasNoCard({ record, state, delivered }: StoredRequest): boolean {
  const { kind } = record.origin;
  const hasParent = kind === "rollout" || kind === "safety";
  return hasParent && state !== "unknown" && delivered.marks["card"] === undefined;
}

/** Mentions the users and user groups among these IDs. */
export function mentions(ids: readonly string[]): string {
  const called = ids.flatMap((id) => {
    if (/^S[A-Z0-9]{2,}$/.test(id)) return [`<!subteam^${id}>`];
    return /^[UW][A-Z0-9]{2,}$/.test(id) ? [`<@${id}>`] : [];
  });
  return called.join(" ");
}

/** Returns the vote that ended a request. */
export function denialOf({ votes }: StoredRequest): Vote | undefined {
  return votes.find(({ vote }) => vote === "deny");
}

/** Says who approved it, where the card doesn't. The outcome says who denied it. */
export function decidedLine(request: StoredRequest): Markdown | undefined {
  const names = approversIn(request);
  return names.length === 0 ? undefined : md`Approved by ${names.join(", ")}.`;
}

/** The names of those who approved it. Empty while it waits, and once it was denied. */
export function approversIn({ record, votes, state }: StoredRequest): readonly string[] {
  if (!record.approval || state === "draft" || state === "denied") return [];
  return approvalsIn(votes).map((vote) => vote.name);
}
